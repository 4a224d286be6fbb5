use paceline_policy::unit::counter;

use crate::number::{Key, floor};

/// A batch counts as ended if at most this fraction of it is missing: that is a rounding error.
pub(crate) const ROUNDING: f64 = 1e-9;

/// A job's demand for CPU on its node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Its weight relative to other jobs: above 0.
    pub weight: f64,
    /// The largest share that it can get, above 0: the smaller of its limit and of what it can use.
    pub cap: f64,
    /// Whether the cap is its limit, so that the job is throttled while it is at its cap.
    pub limited: bool,
    /// Work done per second of the whole node's CPU.
    pub speed: f64,
    /// Seconds per unit of work that do not depend on the share. At a share `x` the rate
    /// is `x / (1 / speed + fixed_per_work·x)`.
    pub fixed_per_work: f64,
    /// Work in one batch.
    pub batch: f64,
    /// By how much a neighbour of equal share slows it down; `None` for the node's contention.
    pub contention: Option<f64>,
}

impl Demand {
    /// The level at which the job reaches its cap.
    pub(super) fn threshold(&self) -> Key {
        Key(self.cap / self.weight)
    }

    /// Whether its rate follows from its share and the node's contention alone.
    pub(super) fn is_plain(&self) -> bool {
        self.fixed_per_work <= 0.0 && self.contention.is_none()
    }

    /// Work per second at the share `x`, without contention.
    pub fn rate(&self, x: f64) -> f64 {
        x / (1.0 / self.speed + self.fixed_per_work * x)
    }
}

/// What a job has done and used on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Work done.
    pub work: f64,
    /// CPU time used, as seconds of the whole node.
    pub cpu: f64,
    /// Seconds at its limit.
    pub throttled: f64,
    /// Batches that ended.
    pub batches: u64,
    /// Their duration, in seconds.
    pub batch_seconds: f64,
}

/// A node's clocks, which give each job's progress.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clocks {
    /// Time at the node's usual speed, less contention. Jobs at their caps progress with it.
    pub(super) own: f64,
    /// The level integrated over that clock. Sharing jobs progress with it.
    pub(super) shared: f64,
    /// The level integrated over time: the CPU use of sharing jobs.
    pub(super) level: f64,
}

impl Clocks {
    /// Advances by `seconds`, in which the node does what takes `usual` seconds at its usual speed.
    pub(super) fn tick(&mut self, seconds: f64, usual: f64, level: f64, efficiency: f64) {
        self.own += usual * efficiency;
        self.shared += usual * efficiency * level;
        self.level += seconds * level;
    }
}

/// The side of the level on which a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Capped,
    Sharing,
}

/// One job on the node.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) demand: Demand,
    pub(super) side: Side,
    /// The work done at the last settling, and the work at which something happens next.
    pub(super) work: f64,
    pub(super) goal: f64,
    /// The position of the goal on its clock, as it is in the node's lists.
    pub(super) marked: Key,
    /// Work per tick of its clock since the last settling.
    pace: f64,
    cpu: f64,
    throttled: f64,
    batches: u64,
    began: f64,
    batch_ended: f64,
    settled: f64,
    clocks: Clocks,
}

impl Member {
    pub(super) fn new(demand: Demand, goal: f64, now: f64, clocks: Clocks) -> Self {
        Self {
            demand,
            side: Side::Sharing,
            work: 0.0,
            goal,
            marked: Key::default(),
            pace: 0.0,
            cpu: 0.0,
            throttled: 0.0,
            batches: 0,
            began: now,
            batch_ended: now,
            settled: now,
            clocks,
        }
    }

    /// Whether it progresses with the clock of the level.
    pub(super) fn runs_by_level(&self) -> bool {
        self.side == Side::Sharing && self.demand.is_plain()
    }

    /// Its share of the node at this level.
    pub(super) fn share(&self, level: f64) -> f64 {
        match self.side {
            Side::Capped => self.demand.cap,
            Side::Sharing => self.demand.weight * level,
        }
    }

    /// Sets the pace at this level, and returns where its goal is on its clock. The clock includes
    /// the node's contention; `own` corrects it for the job's own contention.
    pub(super) fn mark(&mut self, level: f64, own: f64) -> Key {
        self.pace = if self.runs_by_level() {
            self.demand.weight * self.demand.speed
        } else {
            self.demand.rate(self.share(level)) * own
        };
        let clock = if self.runs_by_level() { self.clocks.shared } else { self.clocks.own };
        Key(clock + (self.goal - self.work).max(0.0) / self.pace)
    }

    pub(super) fn settle(&mut self, now: f64, clocks: Clocks) {
        let before = std::mem::replace(&mut self.clocks, clocks);
        let seconds = now - self.settled;
        self.settled = now;
        let ticks = if self.runs_by_level() {
            clocks.shared - before.shared
        } else {
            clocks.own - before.own
        };
        let done = self.pace * ticks;
        self.work += done;
        self.cpu += match self.side {
            Side::Capped => self.demand.cap * seconds,
            Side::Sharing => self.demand.weight * (clocks.level - before.level),
        };
        if self.side == Side::Capped && self.demand.limited {
            self.throttled += seconds;
        }
        let batches = floor(self.work / self.demand.batch + ROUNDING);
        if batches > self.batches {
            let left = (self.work - counter(batches) * self.demand.batch).clamp(0.0, done);
            self.batch_ended = now - if done > 0.0 { seconds * left / done } else { 0.0 };
            self.batches = batches;
        }
    }

    pub(super) fn tally(&self) -> Tally {
        Tally {
            work: self.work,
            cpu: self.cpu,
            throttled: self.throttled,
            batches: self.batches,
            batch_seconds: self.batch_ended - self.began,
        }
    }
}
