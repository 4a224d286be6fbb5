//! The course of a move, step by step. Pure.
//!
//! | step | on success | on failure |
//! |---|---|---|
//! | create: a container on the target, not started | save | discard |
//! | save: the job's checkpoint is asked for and acknowledged | pause | discard |
//! | pause: the container at the source is frozen | start | discard |
//! | start: the container at the target | prove | discard |
//! | prove: its first report goes on from the checkpoint | retire | discard |
//! | retire: the frozen container is removed | rename | again; discard, where the proof is void |
//! | rename: its successor has its name | moved | again; moved in the end |
//! | discard: the container on the target is removed | resume | again |
//! | resume: the container at the source goes on | stayed | again |
//!
//! Two containers never run at once: the one at the target is started after the one at the source
//! was frozen, and that one goes on only after the other was removed. One of them is always there:
//! the one at the source is removed only after the other has proved that it has taken over, and
//! until then it is whole, in memory, and loses nothing by going on.

use serde::{Deserialize, Serialize};

/// What is to be done next. Each can be done again, whether it was done before or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// A container is made on the target, but not started.
    Create,
    /// The job is asked for a checkpoint, and acknowledges it.
    Save,
    /// The container at the source is frozen.
    Pause,
    /// The container at the target is started.
    Start,
    /// Its first report goes on from the checkpoint.
    Prove,
    /// The frozen container is removed: there is no way back from here.
    Retire,
    /// Its successor gets its name.
    Rename,
    /// The container on the target is removed.
    Discard,
    /// The container at the source goes on.
    Resume,
}

/// How a move comes along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Course {
    /// This is next.
    GoOn(Step),
    /// This is to be tried again after a while.
    Again(Step),
    /// The job runs on the target.
    Moved,
    /// The job runs at the source, for this reason.
    Stayed(String),
}

/// A move that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Procedure {
    step: Step,
    /// Why the job is to stay where it is.
    #[serde(default)]
    failed: Option<String>,
    /// The step was tried before, and may have been done.
    #[serde(skip)]
    tried: bool,
}

impl Step {
    /// Every step, in the order in which they come where all goes well, then those of the way back.
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

    /// In one word.
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

    /// Whether the job can still stay where it is when this has begun.
    pub const fn can_be_undone(self) -> bool {
        matches!(self, Self::Create | Self::Save | Self::Pause | Self::Start | Self::Prove)
    }

    /// Whether this takes as long as the job takes, and can be broken off.
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
    /// What is to be done now.
    pub fn step(&self) -> Step {
        self.step
    }

    /// A move that somebody was at who is no more: it is undone where that can be, else completed.
    #[must_use]
    pub fn abandoned(self, why: &str) -> Self {
        if !self.step.can_be_undone() {
            return Self { tried: true, ..self };
        }
        Self { step: Step::Discard, failed: Some(why.to_owned()), tried: false }
    }

    /// What is to be done was done, or not.
    pub fn came(&mut self, outcome: Result<(), String>) -> Course {
        match (outcome, self.step.next()) {
            (Ok(()), Some(next)) => self.go_on(next),
            (Ok(()), None) => match &self.failed {
                Some(why) => Course::Stayed(why.clone()),
                None => Course::Moved,
            },
            (Err(why), _) if self.step.can_be_undone() => self.back(why),
            (Err(_), _) => {
                self.tried = true;
                Course::Again(self.step)
            }
        }
    }

    /// What is to be done has not even begun, and is not to. `None` where it must be done.
    pub fn refused(&mut self, why: String) -> Option<Course> {
        let whole = self.step.can_be_undone() || (self.step == Step::Retire && !self.tried);
        whole.then(|| self.back(why))
    }

    /// What was proved holds no more, and the source is still there.
    pub fn refuted(&mut self, why: String) -> Course {
        self.back(why)
    }

    fn back(&mut self, why: String) -> Course {
        self.failed = Some(why);
        self.go_on(Step::Discard)
    }

    fn go_on(&mut self, next: Step) -> Course {
        (self.step, self.tried) = (next, false);
        Course::GoOn(next)
    }
}

#[cfg(test)]
mod tests;
