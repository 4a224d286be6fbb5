//! New jobs, whose cap and work of a step are not measured yet. They are served first where the promise
//! to other jobs allows it, since all later decisions depend on these measurements.

/// The longest time for which a job is new, in seconds.
const MAX_SECONDS: f64 = 20.0;
/// This many windows in which it could have used more are enough. So is one in which it used most of the
/// node.
const MIN_WINDOWS: u8 = 2;

/// What is still to be measured of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Newcomer {
    since: f64,
    windows: u8,
    uses_all: bool,
    is_new: bool,
}

/// The state of the measurements at a frame.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is seen or not, by itself")]
pub(super) struct Stage {
    pub(super) t: f64,
    /// Whether it could have used more than it did in the last window.
    pub(super) was_open: bool,
    /// Whether its usage in the last window shows that it can use the whole node.
    pub(super) used_most: bool,
    /// Whether it has received enough service to have begun.
    pub(super) begun: bool,
    pub(super) stepped: bool,
    /// Whether the work of its steps is known, or not needed for lack of a total.
    pub(super) measured: bool,
}

impl Newcomer {
    pub(super) const fn new(t: f64) -> Self {
        Self { since: t, windows: 0, uses_all: false, is_new: true }
    }

    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    pub(super) fn take(&mut self, stage: Stage) {
        if stage.was_open {
            self.windows = self.windows.saturating_add(1);
        }
        self.uses_all |= stage.used_most;
        let shown = (self.windows >= MIN_WINDOWS || self.uses_all) && stage.measured;
        let done = stage.begun && (shown || !stage.stepped);
        let late = stage.t - self.since >= MAX_SECONDS;
        // A job that reports its first step only now still has to be measured.
        self.is_new = !(done || late);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAGE: Stage = Stage {
        t: 3.0,
        was_open: true,
        used_most: false,
        begun: true,
        stepped: true,
        measured: true,
    };

    fn after(stages: &[Stage]) -> bool {
        let mut newcomer = Newcomer::new(0.0);
        for stage in stages {
            newcomer.take(*stage);
        }
        newcomer.is_new()
    }

    #[test]
    fn job_is_new_until_two_windows_have_shown_it() {
        assert!(after(&[]) && after(&[STAGE]) && !after(&[STAGE, STAGE]));
        let waited = Stage { was_open: false, ..STAGE };
        assert!(after(&[STAGE, waited, waited]) && !after(&[STAGE, waited, STAGE]));
        let most = Stage { used_most: true, ..STAGE };
        assert!(!after(&[most]) && !after(&[Stage { measured: false, ..most }, waited]));
        let unmeasured = Stage { measured: false, ..STAGE };
        assert!(after(&[STAGE, unmeasured]));
    }

    #[test]
    fn job_without_steps_is_new_until_it_has_begun() {
        let silent = Stage { stepped: false, was_open: false, ..STAGE };
        assert!(!after(&[silent]) && after(&[Stage { begun: false, ..silent }]));
        assert!(after(&[silent, Stage { was_open: false, ..STAGE }]), "its first step comes later");
    }

    #[test]
    fn no_job_is_new_for_longer_than_twenty_seconds() {
        let never = Stage { was_open: false, begun: false, ..STAGE };
        assert!(after(&[Stage { t: 19.0, ..never }]) && !after(&[Stage { t: 20.0, ..never }]));
    }
}
