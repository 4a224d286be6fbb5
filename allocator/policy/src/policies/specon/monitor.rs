//! Algorithm 1: how fast a job's loss still falls, and the category that follows.

use crate::frame::Job;
use crate::reason::specon::{Class, Trend};
use crate::signal::Learning;
use crate::unit::Share;
use crate::variant::Variant;

impl Class {
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
    /// A gain below this counts as no progress, as a fraction of M.
    pub(super) alpha: f64,
    /// Losses closer together than this count as one, in seconds (F6).
    pub(super) least_gap: f64,
}

/// The state of one job. It belongs to the job, not to a node: a move does not change it (S2), and a
/// job is watched after its move as before (S3).
#[derive(Debug)]
pub(super) struct Member {
    learning: Learning,
    /// The latest gain.
    pub(super) gain: Option<f64>,
    pub(super) class: Class,
    /// When it entered CC last; only valid in CC.
    pub(super) converged_at: f64,
    /// It was moved for convergence, or, in print, stayed after a request.
    pub(super) migrated: bool,
    /// It was moved to even out the numbers of jobs.
    pub(super) rebalanced: bool,
    /// The time from which a refused job may ask again (P6).
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

    /// Records a frame's values of the job.
    pub(super) fn observe(&mut self, t: f64, job: &Job, rule: Rule) -> Trend {
        self.share = job.limit.chosen().unwrap_or(self.share);
        match self.learning.gain(t, job, rule.variant, rule.least_gap) {
            Some(gain) => self.judge(t, gain, rule),
            None => Trend::Unmeasured,
        }
    }

    /// Lines 6 to 22, with the branches put where the text has them (S6 to S9).
    pub(super) fn judge(&mut self, t: f64, gain: f64, Rule { variant, alpha, .. }: Rule) -> Trend {
        // S4: a gain is compared with the previous one, so a single gain is not enough.
        let Some(previous) = self.gain.replace(gain) else { return Trend::First { gain } };
        if gain >= alpha {
            self.class = Class::Progressing;
            return Trend::Growing { gain, alpha };
        }
        let slowing = match variant {
            // A job with a flat loss, gain 0 after gain 0, must not get stuck between the categories.
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

impl Trend {
    /// Whether a job in CC continues to slow down (lines 13 to 16; S10).
    pub(super) fn has_converged(self) -> bool {
        matches!(self, Self::Slowing { from: Class::Converged, .. })
    }
}
