//! The steps of a move and their order. Pure.
//!
//! | step | on success | on failure |
//! |---|---|---|
//! | create: create a container on the target, do not start it | save | discard |
//! | save: ask the job for a checkpoint, wait for it | pause | discard |
//! | pause: pause the container at the source | start | discard |
//! | start: start the container on the target | prove | discard |
//! | prove: wait for its first report after the checkpoint | retire | discard |
//! | retire: remove the paused container | rename | retry; discard if the proof is void |
//! | rename: give the successor the name of the source | moved | retry; moved in the end |
//! | discard: remove the container on the target | resume | retry |
//! | resume: resume the container at the source | stayed | retry |
//!
//! The two containers never run at once: the target starts after the source was paused, and the
//! source resumes only after the target was removed. One of them always exists: the source is
//! removed only after the target has proved that it has taken over. Until then the source is paused
//! in memory and can resume without a loss.

use serde::{Deserialize, Serialize};

/// A step. Each can be repeated, whether it was done before or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Create a container on the target, but do not start it.
    Create,
    /// Ask the job for a checkpoint, and wait until it acknowledges it.
    Save,
    /// Pause the container at the source.
    Pause,
    /// Start the container on the target.
    Start,
    /// Wait for its first report after the checkpoint.
    Prove,
    /// Remove the paused container: from here, the move cannot be undone.
    Retire,
    /// Give the successor the name of the source.
    Rename,
    /// Remove the container on the target.
    Discard,
    /// Resume the container at the source.
    Resume,
}

/// The state of a move after a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MigrationState {
    /// This step is next.
    Continue(Step),
    /// This step is to be tried again later.
    Retry(Step),
    /// The job runs on the target.
    Moved,
    /// The job runs at the source, for this reason.
    Stayed(String),
}

/// A move that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Procedure {
    step: Step,
    /// Why the job stays at the source, once that is decided.
    #[serde(default)]
    failed: Option<String>,
    /// Whether the step was tried before, so that it may have been done.
    #[serde(skip)]
    tried: bool,
}

impl Step {
    /// Every step: first those of a successful move in their order, then those of a rollback.
    pub const ALL: [Self; 9] = [
        Self::Create,
        Self::Save,
        Self::Pause,
        Self::Start,
        Self::Prove,
        Self::Retire,
        Self::Rename,
        Self::Discard,
        Self::Resume,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Save => "save",
            Self::Pause => "pause",
            Self::Start => "start",
            Self::Prove => "prove",
            Self::Retire => "retire",
            Self::Rename => "rename",
            Self::Discard => "discard",
            Self::Resume => "resume",
        }
    }

    /// Whether the job can still stay at the source after this step has begun.
    pub const fn can_be_undone(self) -> bool {
        matches!(self, Self::Create | Self::Save | Self::Pause | Self::Start | Self::Prove)
    }

    /// Whether this step waits for the job, and can be interrupted.
    pub const fn waits_for_the_job(self) -> bool {
        matches!(self, Self::Save | Self::Prove)
    }

    const fn next(self) -> Option<Self> {
        match self {
            Self::Create => Some(Self::Save),
            Self::Save => Some(Self::Pause),
            Self::Pause => Some(Self::Start),
            Self::Start => Some(Self::Prove),
            Self::Prove => Some(Self::Retire),
            Self::Retire => Some(Self::Rename),
            Self::Discard => Some(Self::Resume),
            Self::Rename | Self::Resume => None,
        }
    }
}

impl Default for Procedure {
    fn default() -> Self {
        Self { step: Step::Create, failed: None, tried: false }
    }
}

impl Procedure {
    /// The present step.
    pub fn step(&self) -> Step {
        self.step
    }

    /// Continues a move whose allocator was killed: it is undone if that is possible, else completed.
    #[must_use]
    pub fn abandoned(self, why: &str) -> Self {
        if !self.step.can_be_undone() {
            return Self { tried: true, ..self };
        }
        Self { step: Step::Discard, failed: Some(why.to_owned()), tried: false }
    }

    /// Takes in the outcome of the present step.
    pub fn finished(&mut self, outcome: Result<(), String>) -> MigrationState {
        match (outcome, self.step.next()) {
            (Ok(()), Some(next)) => self.continue_with(next),
            (Ok(()), None) => match &self.failed {
                Some(why) => MigrationState::Stayed(why.clone()),
                None => MigrationState::Moved,
            },
            (Err(why), _) if self.step.can_be_undone() => self.undo(why),
            (Err(_), _) => {
                self.tried = true;
                MigrationState::Retry(self.step)
            }
        }
    }

    /// The present step was not begun: undoes the move. `None` if the step must be done.
    pub fn refused(&mut self, why: String) -> Option<MigrationState> {
        let whole = self.step.can_be_undone() || (self.step == Step::Retire && !self.tried);
        whole.then(|| self.undo(why))
    }

    /// The proof is not valid any more, and the source still exists: undoes the move.
    pub fn refuted(&mut self, why: String) -> MigrationState {
        self.undo(why)
    }

    fn undo(&mut self, why: String) -> MigrationState {
        self.failed = Some(why);
        self.continue_with(Step::Discard)
    }

    fn continue_with(&mut self, next: Step) -> MigrationState {
        (self.step, self.tried) = (next, false);
        MigrationState::Continue(next)
    }
}

#[cfg(test)]
mod tests;
