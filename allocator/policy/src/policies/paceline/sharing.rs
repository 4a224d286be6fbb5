//! The virtual system: parties share one capacity by weight, each up to its cap, until its work is
//! done.
//!
//! No party arrives while it runs, so the level of the water only rises. A party crosses from sharing to
//! its cap once at the most, and a run costs O(n log n): those that share are sorted by the level's volume
//! at their end, those at their caps are a heap by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::rank::Rank;

/// A party that would need more than this part beyond what it can have at most does not end: the rest is for
/// rounding.
const SAFELY: f64 = 1.001;

/// One party. All three are above 0, and `left` may be infinite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Party {
    pub(super) weight: f64,
    /// The most of the node that it can use.
    pub(super) cap: f64,
    /// Its work, in node-seconds.
    pub(super) left: f64,
}

/// What comes of one party. Times are seconds from the start of the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fate {
    /// The service that it has by the end of the run.
    pub(super) served: f64,
    /// When its work is done: infinite if the run ends before that.
    pub(super) end: f64,
    /// When it reaches its cap, infinite if it never does, and the volume then.
    pub(super) capped: f64,
    pub(super) capped_volume: f64,
}

/// A time of one level: from when on, the volume by then, and the level.
#[derive(Clone, Copy, Debug)]
struct Piece {
    from: f64,
    volume: f64,
    level: f64,
}

/// A whole run: what comes of each party, in their order, and the level over time.
///
/// The level is the share of a party of weight 1 that is not at its cap; its integral over time is the
/// *volume*. A party of weight w that shares has received w times the volume.
#[derive(Debug)]
pub(super) struct Course {
    pub(super) fates: Vec<Fate>,
    pieces: Vec<Piece>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Sharing,
    Capped,
    Done,
}

/// Lets the parties share `capacity` for `horizon` seconds, or until all are done.
pub(super) fn run(parties: &[Party], capacity: f64, horizon: f64) -> Course {
    let mut run = Run::new(parties, capacity, horizon);
    run.until(horizon);
    run.course(parties)
}

/// The level at which parties fill `capacity`, each with at most its cap: infinite if all have theirs.
pub(super) fn level(parties: impl IntoIterator<Item = Party>, capacity: f64) -> f64 {
    let mut all: Vec<Party> = parties.into_iter().collect();
    all.sort_by(|a, b| (a.cap / a.weight).total_cmp(&(b.cap / b.weight)));
    let mut weights: f64 = all.iter().map(|party| party.weight).sum();
    let mut left = capacity;
    for party in all {
        let level = left / weights;
        if party.cap > party.weight * level {
            return level.max(0.0);
        }
        left -= party.cap;
        weights -= party.weight;
    }
    f64::INFINITY
}

struct Run<'a> {
    parties: &'a [Party],
    capacity: f64,
    now: f64,
    volume: f64,
    sides: Vec<Side>,
    fates: Vec<Fate>,
    pieces: Vec<Piece>,
    /// Those that share, by the level at which they reach their caps: the lowest last.
    thresholds: Vec<Rank>,
    /// Those that can end in this run, by the volume at their end if they share: the first last.
    by_volume: Vec<Rank>,
    by_time: BinaryHeap<Reverse<Rank>>,
    /// How many share, and the sum of their weights; the sum of the caps of the others.
    sharing: usize,
    weights: f64,
    caps: f64,
}

impl<'a> Run<'a> {
    fn new(parties: &'a [Party], capacity: f64, horizon: f64) -> Self {
        let fate = |party: &Party| Fate {
            served: 0.0,
            end: if party.left > 0.0 { f64::INFINITY } else { 0.0 },
            capped: f64::INFINITY,
            capped_volume: f64::INFINITY,
        };
        let side = |party: &Party| if party.left > 0.0 { Side::Sharing } else { Side::Done };
        let there = || parties.iter().enumerate().filter(|(_, party)| party.left > 0.0);
        let mut thresholds: Vec<Rank> =
            there().map(|(index, party)| Rank::new(party.cap / party.weight, index)).collect();
        thresholds.sort_unstable_by(|a, b| b.cmp(a));
        let can_end =
            |party: &Party| party.left <= SAFELY * party.cap.min(capacity.max(0.0)) * horizon;
        let mut by_volume: Vec<Rank> = there()
            .filter(|(_, party)| horizon.is_infinite() || can_end(party))
            .map(|(index, party)| Rank::new(party.left / party.weight, index))
            .collect();
        by_volume.sort_unstable_by(|a, b| b.cmp(a));
        Self {
            parties,
            capacity,
            now: 0.0,
            volume: 0.0,
            sides: parties.iter().map(side).collect(),
            fates: parties.iter().map(fate).collect(),
            pieces: Vec::new(),
            sharing: thresholds.len(),
            weights: there().map(|(_, party)| party.weight).sum(),
            caps: 0.0,
            thresholds,
            by_volume,
            by_time: BinaryHeap::new(),
        }
    }

    fn until(&mut self, horizon: f64) {
        loop {
            self.cross();
            let level = self.level();
            self.pieces.push(Piece { from: self.now, volume: self.volume, level });
            let shared = self.next_of(Side::Sharing).filter(|_| level > 0.0);
            let shared =
                shared.map(|(volume, _)| self.now + (volume - self.volume).max(0.0) / level);
            let capped = self.next_of(Side::Capped).map(|(at, _)| at.max(self.now));
            let next = shared.unwrap_or(f64::INFINITY).min(capped.unwrap_or(f64::INFINITY));
            if next > horizon || next.is_infinite() {
                if horizon.is_finite() {
                    self.go(horizon, level);
                }
                return;
            }
            self.go(next, level);
            let side =
                if capped.is_some_and(|at| at <= next) { Side::Capped } else { Side::Sharing };
            self.end(side);
        }
    }

    fn go(&mut self, to: f64, level: f64) {
        self.volume += level * (to - self.now);
        self.now = to;
    }

    /// The level of those that share: 0 if none does.
    fn level(&self) -> f64 {
        if self.sharing == 0 { 0.0 } else { ((self.capacity - self.caps) / self.weights).max(0.0) }
    }

    /// Moves those that have reached their caps. Each move raises the level, so this ends.
    fn cross(&mut self) {
        while let Some(threshold) = self.thresholds.last().copied() {
            let index = threshold.place();
            let here = self.sides.get(index).copied();
            if here == Some(Side::Sharing) {
                if threshold.number() > self.level() {
                    return;
                }
                self.cap(index);
            }
            self.thresholds.pop();
        }
    }

    fn cap(&mut self, index: usize) {
        let Some(party) = self.parties.get(index) else { return };
        if let Some(side) = self.sides.get_mut(index) {
            *side = Side::Capped;
        }
        if let Some(fate) = self.fates.get_mut(index) {
            (fate.capped, fate.capped_volume) = (self.now, self.volume);
        }
        let left = (party.left - party.weight * self.volume).max(0.0);
        self.leave_sharing(party.weight);
        self.caps += party.cap;
        self.by_time.push(Reverse(Rank::new(self.now + left / party.cap, index)));
    }

    fn leave_sharing(&mut self, weight: f64) {
        self.sharing -= 1;
        self.weights = if self.sharing == 0 { 0.0 } else { self.weights - weight };
    }

    /// When the first of a side ends: by volume or by time.
    fn next_of(&mut self, side: Side) -> Option<(f64, usize)> {
        let sides = &self.sides;
        let is_of = |rank: &Rank| sides.get(rank.place()) == Some(&side);
        let next = if side == Side::Sharing {
            while self.by_volume.pop_if(|rank| !is_of(rank)).is_some() {}
            *self.by_volume.last()?
        } else {
            while self.by_time.peek().is_some_and(|Reverse(rank)| !is_of(rank)) {
                self.by_time.pop();
            }
            self.by_time.peek()?.0
        };
        Some((next.number(), next.place()))
    }

    fn end(&mut self, side: Side) {
        let Some((_, index)) = self.next_of(side) else { return };
        let Some(party) = self.parties.get(index) else { return };
        if let Some(fate) = self.fates.get_mut(index) {
            (fate.end, fate.served) = (self.now, party.left);
        }
        if let Some(now) = self.sides.get_mut(index) {
            *now = Side::Done;
        }
        if side == Side::Sharing {
            self.leave_sharing(party.weight);
        } else {
            self.caps -= party.cap;
        }
    }

    fn course(mut self, parties: &[Party]) -> Course {
        for ((party, side), fate) in parties.iter().zip(&self.sides).zip(&mut self.fates) {
            let served = match side {
                Side::Done => continue,
                Side::Sharing => party.weight * self.volume,
                Side::Capped => {
                    party.weight * fate.capped_volume + party.cap * (self.now - fate.capped)
                }
            };
            fate.served = served.min(party.left);
        }
        Course { fates: self.fates, pieces: self.pieces }
    }
}

impl Course {
    /// The volume at a moment.
    pub(super) fn volume_at(&self, time: f64) -> f64 {
        let after = self.pieces.partition_point(|piece| piece.from <= time);
        let piece = after.checked_sub(1).and_then(|at| self.pieces.get(at));
        piece.map_or(0.0, |piece| {
            if piece.level > 0.0 {
                piece.volume + piece.level * (time - piece.from)
            } else {
                piece.volume
            }
        })
    }

    /// When the volume is reached.
    pub(super) fn time_of(&self, volume: f64) -> f64 {
        let after = self.pieces.partition_point(|piece| piece.volume <= volume);
        let piece = after.checked_sub(1).and_then(|at| self.pieces.get(at));
        piece.map_or(0.0, |piece| {
            if piece.level > 0.0 {
                piece.from + (volume - piece.volume) / piece.level
            } else {
                piece.from
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn party(weight: f64, cap: f64, left: f64) -> Party {
        Party { weight, cap, left }
    }

    fn ends(parties: &[Party], capacity: f64) -> Vec<f64> {
        run(parties, capacity, f64::INFINITY).fates.iter().map(|fate| fate.end).collect()
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()))
    }

    #[test]
    fn parties_of_equal_weight_end_as_under_processor_sharing() {
        let all = [party(1.0, 1.0, 1.0), party(1.0, 1.0, 2.0), party(1.0, 1.0, 4.0)];
        for (end, expected) in ends(&all, 1.0).into_iter().zip([3.0, 5.0, 7.0]) {
            assert!(near(end, expected), "{end} {expected}");
        }
    }

    #[test]
    fn party_at_its_cap_leaves_the_rest_to_others() {
        let all = [party(1.0, 0.2, 1.0), party(1.0, 1.0, 4.0), party(1.0, 1.0, f64::INFINITY)];
        let ends = ends(&all, 1.0);
        assert!(near(ends[0], 5.0) && near(ends[1], 9.0) && ends[2].is_infinite(), "{ends:?}");
    }

    #[test]
    fn no_work_is_done_without_capacity() {
        assert!(ends(&[party(1.0, 1.0, 1.0)], 0.0)[0].is_infinite());
        assert!(near(ends(&[party(1.0, 1.0, 0.0)], 0.0)[0], 0.0));
    }

    /// The same by small steps.
    fn stepped(parties: &[Party], capacity: f64, horizon: f64) -> Vec<f64> {
        let mut served = vec![0.0; parties.len()];
        let steps = 20_000_u32;
        let dt = horizon / f64::from(steps);
        for _ in 0..steps {
            let there = parties.iter().zip(&served).filter(|(party, served)| party.left > **served);
            let level = level(there.map(|(party, _)| *party), capacity);
            for (party, served) in parties.iter().zip(&mut served) {
                let rate = party.cap.min(party.weight * level);
                *served = (*served + rate * dt).min(party.left);
            }
        }
        served
    }

    fn parties() -> impl Strategy<Value = Vec<Party>> {
        let one = (0.2..4.0_f64, 0.05..1.0_f64, 0.0..8.0_f64);
        prop::collection::vec(one.prop_map(|(weight, cap, left)| party(weight, cap, left)), 1..8)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn run_is_water_filling_over_time(
            parties in parties(), capacity in 0.2..1.0_f64, horizon in 0.1..20.0_f64,
        ) {
            let exact = run(&parties, capacity, horizon);
            for (fate, small) in exact.fates.iter().zip(stepped(&parties, capacity, horizon)) {
                prop_assert!((fate.served - small).abs() < 0.02, "{fate:?} {small}");
            }
        }

        #[test]
        fn capacity_is_used_up_or_all_are_at_their_caps(
            parties in parties(), capacity in 0.2..1.0_f64,
        ) {
            let course = run(&parties, capacity, f64::INFINITY);
            let last = course.fates.iter().map(|fate| fate.end).fold(0.0, f64::max);
            prop_assert!(last.is_finite());
            let work: f64 = parties.iter().map(|party| party.left).sum();
            prop_assert!(work <= capacity * last + 1e-6);
            for (party, fate) in parties.iter().zip(&course.fates) {
                prop_assert!(near(fate.served, party.left));
                prop_assert!(fate.end + 1e-9 >= party.left / party.cap);
                prop_assert!(near(course.volume_at(course.time_of(0.3)), 0.3) || course.time_of(0.3) >= last - 1e-9);
            }
        }
    }
}
