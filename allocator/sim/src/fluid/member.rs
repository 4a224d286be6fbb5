use paceline_policy::unit::counter;

use crate::number::{Key, floor};

/// A batch counts as ended when this fraction of it or less is missing: that is rounding.
pub(crate) const ROUNDING: f64 = 1e-9;

/// What a job asks of its node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Party {
    /// Its weight beside others: above 0.
    pub weight: f64,
    /// The most that it can get: the smaller of its limit and of what it can use, above 0.
    pub cap: f64,
    /// Whether that is its limit, so that it is held back while it stands there.
    pub limited: bool,
    /// Work done per second of the whole node's CPU.
    pub speed: f64,
    /// Seconds that each unit of work takes on top, whatever its share: its speed is then
    /// `x / (1 / speed + bend·x)` of a share `x`.
    pub bend: f64,
    /// Work in one batch.
    pub batch: f64,
    /// By how much a neighbour of equal share slows it down, where that is not the node's contention.
    pub contention: Option<f64>,
}

impl Party {
    /// Where the level must be for the job to be at its cap.
    pub(super) fn threshold(&self) -> Key {
        Key(self.cap / self.weight)
    }

    /// Whether it is as fast as its share and the node's contention say.
    pub(super) fn is_plain(&self) -> bool {
        self.bend <= 0.0 && self.contention.is_none()
    }

    /// Work per second at the share `x`.
    pub fn rate(&self, x: f64) -> f64 {
        x / (1.0 / self.speed + self.bend * x)
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

/// A node's clocks, from which a job's progress is read off.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clocks {
    /// Time at the node's usual speed, slowed down by contention: what jobs at their caps go by.
    pub(super) own: f64,
    /// The level over that: what sharing jobs go by.
    pub(super) shared: f64,
    /// The level over time: what sharing jobs use.
    pub(super) level: f64,
}

impl Clocks {
    /// So many seconds pass, in which the node does what takes it `usual` seconds at its usual speed.
    pub(super) fn tick(&mut self, seconds: f64, usual: f64, level: f64, efficiency: f64) {
        self.own += usual * efficiency;
        self.shared += usual * efficiency * level;
        self.level += seconds * level;
    }
}

/// Where a job stands to the level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Capped,
    Sharing,
}

/// One job on the node.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) party: Party,
    pub(super) side: Side,
    /// Work done as of the last settling, and the work at which something happens.
    pub(super) work: f64,
    pub(super) goal: f64,
    /// The goal on its clock, as it stands in the node's lists.
    pub(super) marked: Key,
    /// Work per tick of its clock since then.
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
    pub(super) fn new(party: Party, goal: f64, now: f64, clocks: Clocks) -> Self {
        Self {
            party,
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

    /// Whether its clock is that of the level.
    pub(super) fn runs_by_level(&self) -> bool {
        self.side == Side::Sharing && self.party.is_plain()
    }

    /// Its share of the node at this level.
    pub(super) fn share(&self, level: f64) -> f64 {
        match self.side {
            Side::Capped => self.party.cap,
            Side::Sharing => self.party.weight * level,
        }
    }

    /// Takes up the pace that it has at this level, and says where its goal lies on its clock. Its clock is
    /// slowed down by the node's contention; `own` is what its own makes of that.
    pub(super) fn mark(&mut self, level: f64, own: f64) -> Key {
        self.pace = if self.runs_by_level() {
            self.party.weight * self.party.speed
        } else {
            self.party.rate(self.share(level)) * own
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
            Side::Capped => self.party.cap * seconds,
            Side::Sharing => self.party.weight * (clocks.level - before.level),
        };
        if self.side == Side::Capped && self.party.limited {
            self.throttled += seconds;
        }
        let batches = floor(self.work / self.party.batch + ROUNDING);
        if batches > self.batches {
            let left = (self.work - counter(batches) * self.party.batch).clamp(0.0, done);
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
