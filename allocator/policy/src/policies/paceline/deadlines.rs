//! The end of each job under equal sharing, and whom it lets be served before it.

use super::claimant::{Claimant, Size};
use super::ghost::Ghost;
use super::row::Row;
use super::settings::Settings;
use super::sharing::{Course, Party, run};
use super::slack::Slacks;

/// A slack of this part of the shortest interval is used up: what one more interval takes beyond it is less
/// than that interval.
const USED_UP: f64 = 0.25;
/// What takes more seconds than this never ends.
const FOREVER: f64 = 1e12;

/// The deadlines of one run, in the order of its rows.
#[derive(Debug)]
pub(super) struct Deadlines {
    claimants: Vec<Claimant>,
    course: Course,
    slacks: Slacks,
}

impl Deadlines {
    /// Runs the virtual system on from the moment `t`, without further arrivals. `capacity` is what the
    /// node does in a second.
    pub(super) fn new(
        rows: &[Row],
        ghosts: &[Ghost],
        settings: &Settings,
        capacity: f64,
        t: f64,
    ) -> Self {
        let party = |row: &Row| Party {
            weight: row.weight,
            cap: row.cap,
            left: row.virtual_left(settings.prior),
        };
        let ghosts = ghosts.iter().map(|ghost| Party {
            weight: ghost.weight,
            cap: ghost.cap,
            left: ghost.left,
        });
        let parties: Vec<Party> = rows.iter().map(party).chain(ghosts).collect();
        let course = run(&parties, capacity, f64::INFINITY);
        let claimant = |(row, fate): (&Row, &super::sharing::Fate)| {
            let due = fate.end + settings.relax * (t - row.since + fate.end);
            let due = due.min(FOREVER);
            let size = match row.left {
                Some(left) => Size::Known(left.min(FOREVER)),
                None => Size::Unknown {
                    weight: row.weight,
                    theta: row.theta,
                    fair: row.fair,
                    used: row.used,
                    fate: *fate,
                },
            };
            Claimant { due, cap: row.cap, size, must: row.must_run(due, settings.least) }
        };
        let claimants: Vec<Claimant> = rows.iter().zip(&course.fates).map(claimant).collect();
        let slacks = Slacks::new(&claimants, &course, capacity, USED_UP * settings.least);
        Self { claimants, course, slacks }
    }

    pub(super) fn each(&self) -> impl Iterator<Item = &Claimant> {
        self.claimants.iter()
    }

    /// Seconds until a row's virtual end.
    pub(super) fn due(&self, at: usize) -> f64 {
        self.claimants.get(at).map_or(f64::INFINITY, |claimant| claimant.due)
    }

    /// The earliest deadline whose slack is used up: infinite if there is none.
    pub(super) fn exhausted(&self) -> f64 {
        self.slacks.exhausted()
    }

    /// Whether so much work of a row may be done first, in node-seconds.
    pub(super) fn allows(&self, at: usize, work: f64) -> bool {
        self.claimants.get(at).is_some_and(|claimant| self.slacks.allows(claimant, work))
    }

    /// How much work of a row may be done first, in node-seconds.
    pub(super) fn leaves(&self, at: usize) -> f64 {
        let claimant = self.claimants.get(at);
        claimant.map_or(f64::INFINITY, |claimant| self.slacks.leaves(claimant, &self.course))
    }

    /// Whether a row may be served first until it has done so much work.
    pub(super) fn fits(&self, at: usize, work: f64) -> bool {
        self.claimants.get(at).is_some_and(|claimant| work <= self.slacks.before(claimant))
    }

    /// The least slack of the other rows.
    pub(super) fn slack_of_others(&self, at: usize) -> Option<f64> {
        self.slacks.of_others(at)
    }
}
