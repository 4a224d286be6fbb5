//! The end of each job under equal sharing, and which jobs may be served before it.

use super::claimant::{Claimant, Size};
use super::ghost::Ghost;
use super::row::Row;
use super::settings::Settings;
use super::sharing::{Participant, Sharing, Trajectory};
use super::slack::{self, Slacks};

/// Slack below this part of the shortest interval counts as used up. So a job is late by less than one
/// such interval.
const USED_UP: f64 = 0.25;
/// Times above this, in seconds, count as infinite.
const MAX_SECONDS: f64 = 1e12;

/// The deadlines of one run, in the order of its rows.
#[derive(Debug)]
pub(super) struct Deadlines {
    claimants: Vec<Claimant>,
    trajectory: Trajectory,
    slacks: Slacks,
}

/// What is kept from run to run.
#[derive(Debug, Default)]
pub(super) struct Orders {
    sharing: Sharing,
    slacks: slack::Orders,
}

impl Deadlines {
    /// Simulates the virtual system from the time `t` on, without further arrivals. `capacity` is the work
    /// that the node does in a second, in node-seconds.
    pub(super) fn new(
        rows: &[Row],
        ghosts: &[Ghost],
        settings: &Settings,
        (capacity, t): (f64, f64),
        orders: &mut Orders,
    ) -> Self {
        let participant = |row: &Row| Participant {
            weight: row.weight,
            cap: row.cap,
            left: row.virtual_left(settings.prior),
        };
        let mut participants = Vec::with_capacity(rows.len() + ghosts.len());
        participants.extend(rows.iter().map(participant));
        participants.extend(ghosts.iter().map(Ghost::participant));
        let trajectory = orders.sharing.run(&participants, capacity, f64::INFINITY);
        let claimant = |(row, outcome): (&Row, &super::sharing::Outcome)| {
            let due = outcome.end + settings.relax * (t - row.since + outcome.end);
            let due = due.min(MAX_SECONDS);
            let size = match row.left {
                Some(left) => Size::Known(left.min(MAX_SECONDS)),
                None => Size::Unknown {
                    weight: row.weight,
                    theta: row.theta,
                    fair: row.fair,
                    used: row.used,
                    outcome: *outcome,
                },
            };
            Claimant { due, cap: row.cap, size, must: row.must_run(due, settings.least) }
        };
        let claimants: Vec<Claimant> =
            rows.iter().zip(&trajectory.outcomes).map(claimant).collect();
        let slacks = Slacks::new(
            &claimants,
            &trajectory,
            (capacity, USED_UP * settings.least),
            &mut orders.slacks,
        );
        Self { claimants, trajectory, slacks }
    }

    pub(super) fn each(&self) -> impl Iterator<Item = &Claimant> {
        self.claimants.iter()
    }

    /// Seconds until a row's virtual end.
    pub(super) fn due(&self, at: usize) -> f64 {
        self.claimants.get(at).map_or(f64::INFINITY, |claimant| claimant.due)
    }

    /// The earliest deadline whose slack is used up; infinite if there is none.
    pub(super) fn exhausted(&self) -> f64 {
        self.slacks.exhausted()
    }

    /// Whether `work` node-seconds of a row may be done first.
    pub(super) fn allows(&self, at: usize, work: f64) -> bool {
        self.claimants.get(at).is_some_and(|claimant| self.slacks.allows(claimant, work))
    }

    /// The work of a row that may be done first, in node-seconds.
    pub(super) fn leaves(&self, at: usize) -> f64 {
        let claimant = self.claimants.get(at);
        claimant.map_or(f64::INFINITY, |claimant| self.slacks.leaves(claimant, &self.trajectory))
    }

    /// Whether a row may be served first until it has done `work` node-seconds.
    pub(super) fn fits(&self, at: usize, work: f64) -> bool {
        self.claimants.get(at).is_some_and(|claimant| work <= self.slacks.before(claimant))
    }

    /// The least slack of the other rows.
    pub(super) fn slack_of_others(&self, at: usize) -> Option<f64> {
        self.slacks.of_others(at)
    }
}
