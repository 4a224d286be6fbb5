//! Reloads the configuration file on SIGHUP.
//!
//! A file is applied completely or not at all. It is read, merged with the command line, and
//! checked before anything changes. Settings that need a restart are reported and ignored. A file whose
//! other settings do not fit the run without these is refused.

use std::convert::Infallible;
use std::path::Path;

use paceline_api::usage::BadUsage;
use paceline_node::controller::NewSettings;
use tokio::sync::{mpsc, watch};
use tracing::{info, warn};
use tracing_subscriber::reload;

use super::RunArgs;
use super::settings::{Built, Fixed, Settings};
use crate::log::Log;

/// Reads the file, and passes changes on.
#[derive(Debug)]
pub(super) struct Reloads {
    args: RunArgs,
    /// Settings that need a restart, as the run began with them.
    fixed: Fixed,
    /// The settings in force.
    settings: Settings,
    log: Log,
    renewals: mpsc::Sender<NewSettings>,
}

impl Reloads {
    /// Reloads for a run with these settings. The controller receives the changes.
    pub(super) fn new(
        args: RunArgs,
        settings: Settings,
        log: Log,
    ) -> (Self, mpsc::Receiver<NewSettings>) {
        let (renewals, renewed) = mpsc::channel(1);
        let fixed = settings.fixed.clone();
        (Self { args, fixed, settings, log, renewals }, renewed)
    }

    /// Reloads the file on each request.
    pub(super) async fn follow(mut self, mut asked: watch::Receiver<u64>) -> Infallible {
        while asked.changed().await.is_ok() {
            let Some(path) = self.args.policy.config.clone() else {
                info!("SIGHUP is ignored: no file is given by --config");
                continue;
            };
            match self.read().await {
                Ok((settings, built)) => self.take(&path, settings, built).await,
                Err(error) => {
                    warn!("cannot reload the configuration: {error}; keeping the current settings");
                }
            }
        }
        std::future::pending().await
    }

    /// Reads and checks the file on another thread, since a disk may be slow.
    async fn read(&self) -> Result<(Settings, Built), BadUsage> {
        let (args, given) = (self.args.clone(), self.log.given().clone());
        let fixed = self.fixed.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let settings = args.settings(&given)?;
            let built = settings.build_for(fixed).map_err(|error| match &args.policy.config {
                Some(path) => BadUsage(format!("{}: {error}", path.display())),
                None => error,
            })?;
            Ok((settings, built))
        });
        reading.await.unwrap_or_else(|error| Err(BadUsage(error.to_string())))
    }

    async fn take(&mut self, path: &Path, new: Settings, built: Built) {
        let path = path.display();
        for key in self.fixed.differences(&new.fixed) {
            warn!("{path}: the change of {key} takes effect at the next start");
        }
        let new = Settings { fixed: self.fixed.clone(), ..new };
        let changes = self.settings.changes(&new);
        if changes.is_empty() {
            info!("{path} is reloaded: no setting that a reload can apply has changed");
            return;
        }
        if let Err(error) = self.apply_log(&new) {
            warn!("cannot change the log: {error}");
        }
        info!("{path} is reloaded: {}", changes.join("; "));
        let Built { policy, shadows, nodes: _ } = built;
        let (now, next) = (&self.settings.chosen, &new.chosen);
        let same =
            (&now.policy, now.variant, &now.params) == (&next.policy, next.variant, &next.params);
        let view = new.policy_view(&policy.params());
        let policy = (!same).then_some(policy);
        let limiter = new.chosen.limiter;
        let renewal = NewSettings { policy, limiter, shadows, view, changes };
        // A run that is ending no longer receives changes.
        drop(self.renewals.send(renewal).await);
        self.settings = new;
    }

    /// Applies changed log settings. Unchanged ones are left alone, so that `paceline
    /// log-level` keeps its effect.
    fn apply_log(&self, new: &Settings) -> Result<(), reload::Error> {
        if self.settings.log_level != new.log_level {
            self.log.set_filter(&new.log_level)?;
        }
        if self.settings.log_format != new.log_format {
            self.log.set_format(new.log_format)?;
        }
        Ok(())
    }
}
