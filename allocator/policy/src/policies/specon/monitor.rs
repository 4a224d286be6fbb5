//! Algorithm 1: how fast a job's loss still falls, and the category that follows.

use crate::frame::Job;
use crate::policy::Variant;
use crate::signal::Learning;
use crate::unit::Share;

/// The paper's categories of containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// PC.
    Progressing,
    /// WC.
    Watching,
    /// CC.
    Converged,
}

impl Class {
    /// Its name in the paper.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Progressing => "PC",
            Self::Watching => "WC",
            Self::Converged => "CC",
        }
    }

    /// One step a frame, by the category at its start (lines 7 to 16; S7, S8).
    const fn slower(self) -> Self {
        match self {
            Self::Progressing => Self::Watching,
            Self::Watching | Self::Converged => Self::Converged,
        }
    }
}

/// How a gain is judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) variant: Variant,
    /// A gain below it is none to speak of, as a fraction of M.
    pub(super) alpha: f64,
    /// Losses closer together than this count as one, in seconds (F6).
    pub(super) least_gap: f64,
}

/// What is kept of one job. It belongs to the job, not to a node: a move changes none of it (S2),
/// and a job is watched after its move as before (S3).
#[derive(Debug)]
pub(super) struct Member {
    learning: Learning,
    /// The latest gain.
    pub(super) gain: Option<f64>,
    pub(super) class: Class,
    /// When it entered CC last; it means something only in CC.
    pub(super) converged_at: f64,
    /// It was moved for convergence or, in print, allowed to stay.
    pub(super) migrated: bool,
    /// It was moved to even out the numbers of jobs.
    pub(super) rebalanced: bool,
    /// A refused job asks again only from then on (P6).
    pub(super) ask_from: Option<f64>,
    pub(super) share: Share,
}

impl Member {
    pub(super) fn new() -> Self {
        Self {
            learning: Learning::default(),
            gain: None,
            class: Class::Progressing,
            converged_at: 0.0,
            migrated: false,
            rebalanced: false,
            ask_from: None,
            share: Share::ALL,
        }
    }

    /// Takes in what a frame says of the job.
    pub(super) fn observe(&mut self, t: f64, job: &Job, rule: Rule) -> Trend {
        self.share = job.limit.chosen().unwrap_or(self.share);
        match self.learning.gain(t, job, rule.variant, rule.least_gap) {
            Some(gain) => self.judge(t, gain, rule),
            None => Trend::Unmeasured,
        }
    }

    /// Lines 6 to 22, with the branches put where the text has them (S6 to S9).
    pub(super) fn judge(&mut self, t: f64, gain: f64, Rule { variant, alpha, .. }: Rule) -> Trend {
        // S4: a gain is compared with the one before, so a single one says nothing.
        let Some(previous) = self.gain.replace(gain) else { return Trend::First { gain } };
        if gain >= alpha {
            self.class = Class::Progressing;
            return Trend::Growing { gain, alpha };
        }
        let slowing = match variant {
            // A job whose loss is flat, gain 0 after gain 0, must not hang between the categories.
            Variant::Resolved => gain <= previous,
            Variant::Published => gain < previous,
        };
        if !slowing {
            return Trend::Bouncing { gain, alpha, previous };
        }
        let from = self.class;
        self.class = from.slower();
        if from == Class::Watching {
            self.converged_at = t;
        }
        Trend::Slowing { gain, alpha, previous, from }
    }
}

/// What a frame says of a job's loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trend {
    /// No loss, no loss before it, or one that comes too soon after it.
    Unmeasured,
    /// The first gain.
    First {
        /// The gain.
        gain: f64,
    },
    /// The gain is α or more.
    Growing {
        /// The gain.
        gain: f64,
        /// α.
        alpha: f64,
    },
    /// The gain is below α, but no step down.
    Bouncing {
        /// The gain.
        gain: f64,
        /// α.
        alpha: f64,
        /// The gain before.
        previous: f64,
    },
    /// The gain is below α and steps down.
    Slowing {
        /// The gain.
        gain: f64,
        /// α.
        alpha: f64,
        /// The gain before.
        previous: f64,
        /// The category before.
        from: Class,
    },
}

impl Trend {
    /// Whether a job that stands in CC goes on slowing down (lines 13 to 16; S10).
    pub(super) fn has_converged(self) -> bool {
        matches!(self, Self::Slowing { from: Class::Converged, .. })
    }
}
