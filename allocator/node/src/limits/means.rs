//! Which means write a container's limit: the control group's files or the engine.

use std::sync::atomic::Ordering;

use paceline_runtime::processes::is_job;
use tracing::{info, warn};

use super::target::Target;
use super::{Actuator, ActuatorBackend};

/// The means by which a limit is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Means {
    /// The control group's files.
    Files,
    /// The container engine.
    Engine,
}

impl Actuator {
    /// The means for a container. Why it is this one is logged once.
    pub(super) fn means(&self, target: &Target) -> Means {
        // A job outside containers has nothing else.
        if is_job(target.id()) {
            return Means::Files;
        }
        match self.backend {
            ActuatorBackend::Cgroup => Means::Files,
            ActuatorBackend::Engine => Means::Engine,
            ActuatorBackend::Auto => match unwritable(target) {
                None => {
                    if !self.logged_files.swap(true, Ordering::Relaxed) {
                        info!(
                            "limits are written into the control groups' files: they can be written \
                             and read back"
                        );
                    }
                    Means::Files
                }
                Some(why) => {
                    self.log_engine(target, &why);
                    Means::Engine
                }
            },
        }
    }

    /// The means after the files have failed for this reason; `None` if there are no others.
    pub(super) fn after_files(&self, target: &Target, why: &str) -> Option<Means> {
        if self.backend != ActuatorBackend::Auto || is_job(target.id()) {
            return None;
        }
        self.log_engine(target, why);
        Some(Means::Engine)
    }

    fn log_engine(&self, target: &Target, why: &str) {
        if !self.logged_engine.swap(true, Ordering::Relaxed) {
            warn!(
                "limits of container {} and others like it are written by the container engine: {why}",
                target.name()
            );
        }
    }
}

/// Why a container's control group cannot be written; `None` if it can.
fn unwritable(target: &Target) -> Option<String> {
    let Some(cgroup) = &target.cgroup else {
        return Some("its control group cannot be read from here".to_owned());
    };
    cgroup.check_writable().err().map(|error| format!("cannot write its control group: {error}"))
}
