//! The virtual system: participants share one capacity by weight, each up to its cap, until its work is
//! done.
//!
//! No participant arrives during a run, so the water level only rises. A participant changes from sharing
//! to its cap at most once. So a run costs O(n log n): sharing ones are sorted by the volume at their end,
//! capped ones are in a heap by time. Where the order of the last run still holds, sorting takes one pass.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::rank::Rank;
use super::ranking::Ranking;

/// A tolerance for rounding: a participant whose work exceeds its maximum service by more than this factor
/// does not end in the run.
const SAFELY: f64 = 1.001;

/// One participant. All three values are above 0, and `left` may be infinite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Participant {
    pub(super) weight: f64,
    /// The most of the node that it can use.
    pub(super) cap: f64,
    /// Its work, in node-seconds.
    pub(super) left: f64,
}

/// The result for one participant. Times are seconds from the start of the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    /// The service that it has received by the end of the run.
    pub(super) served: f64,
    /// When its work is done; infinite if the run ends before that.
    pub(super) end: f64,
    /// When it reaches its cap (infinite if never), and the volume then.
    pub(super) capped: f64,
    pub(super) capped_volume: f64,
}

/// A period of constant level: its start, the volume at its start, and the level.
#[derive(Clone, Copy, Debug)]
struct Piece {
    from: f64,
    volume: f64,
    level: f64,
}

/// A whole run: the result of each participant, in their order, and the level over time.
///
/// The level is the share of a participant of weight 1 that is not at its cap. Its integral over time is the
/// *volume*. A sharing participant of weight w has received w times the volume.
#[derive(Debug)]
pub(super) struct Trajectory {
    pub(super) outcomes: Vec<Outcome>,
    pieces: Vec<Piece>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Sharing,
    Capped,
    Done,
}

/// What is kept from run to run: the orders of the participants, which change little.
#[derive(Debug, Default)]
pub(super) struct Sharing {
    /// Participants by the level at which they reach their caps.
    thresholds: Ranking,
    /// Participants by the volume at their end while sharing.
    by_volume: Ranking,
}

impl Sharing {
    /// Lets the participants share `capacity` for `horizon` seconds, or until all are done.
    pub(super) fn run(
        &mut self,
        participants: &[Participant],
        capacity: f64,
        horizon: f64,
    ) -> Trajectory {
        let can_end = |participant: &Participant| {
            let most = SAFELY * participant.cap.min(capacity.max(0.0)) * horizon;
            participant.left > 0.0 && (horizon.is_infinite() || participant.left <= most)
        };
        let of = |at: usize| participants.get(at);
        let thresholds = self.thresholds.sort(participants.len(), |at| {
            of(at).filter(|of| of.left > 0.0).map(|of| of.cap / of.weight)
        });
        let volume = |of: &Participant| of.left / of.weight;
        let some: Vec<Rank>;
        let by_volume = if horizon.is_infinite() {
            self.by_volume
                .sort(participants.len(), |at| of(at).filter(|of| can_end(of)).map(volume))
        } else {
            let all = participants.iter().enumerate().filter(|(_, of)| can_end(of));
            some = Rank::sorted(all.map(|(at, of)| Rank::new(volume(of), at)));
            &some
        };
        let mut run = Run::new(participants, capacity, thresholds, by_volume);
        run.until(horizon);
        run.trajectory()
    }
}

/// The level at which participants use up `capacity`, each up to its cap; infinite if all reach their caps.
pub(super) fn level(participants: impl IntoIterator<Item = Participant>, capacity: f64) -> f64 {
    let mut all: Vec<Participant> = participants.into_iter().collect();
    all.sort_by(|a, b| (a.cap / a.weight).total_cmp(&(b.cap / b.weight)));
    let mut weights: f64 = all.iter().map(|participant| participant.weight).sum();
    let mut left = capacity;
    for participant in all {
        let level = left / weights;
        if participant.cap > participant.weight * level {
            return level.max(0.0);
        }
        left -= participant.cap;
        weights -= participant.weight;
    }
    f64::INFINITY
}

struct Run<'a> {
    participants: &'a [Participant],
    capacity: f64,
    now: f64,
    volume: f64,
    sides: Vec<Side>,
    outcomes: Vec<Outcome>,
    pieces: Vec<Piece>,
    /// Sharing participants by the level at which they reach their caps, the lowest first.
    thresholds: &'a [Rank],
    /// Participants that can end in this run, by the volume at their end while sharing, the first first.
    by_volume: &'a [Rank],
    by_time: BinaryHeap<Reverse<Rank>>,
    /// The number of sharing participants, the sum of their weights, and the sum of the caps of the others.
    sharing: usize,
    weights: f64,
    caps: f64,
}

impl<'a> Run<'a> {
    fn new(
        participants: &'a [Participant],
        capacity: f64,
        thresholds: &'a [Rank],
        by_volume: &'a [Rank],
    ) -> Self {
        let outcome = |participant: &Participant| Outcome {
            served: 0.0,
            end: if participant.left > 0.0 { f64::INFINITY } else { 0.0 },
            capped: f64::INFINITY,
            capped_volume: f64::INFINITY,
        };
        let side = |participant: &Participant| {
            if participant.left > 0.0 { Side::Sharing } else { Side::Done }
        };
        let there = participants.iter().filter(|participant| participant.left > 0.0);
        Self {
            participants,
            capacity,
            now: 0.0,
            volume: 0.0,
            sides: participants.iter().map(side).collect(),
            outcomes: participants.iter().map(outcome).collect(),
            pieces: Vec::with_capacity(by_volume.len() + 1),
            sharing: thresholds.len(),
            weights: there.map(|participant| participant.weight).sum(),
            caps: 0.0,
            thresholds,
            by_volume,
            by_time: BinaryHeap::new(),
        }
    }

    fn until(&mut self, horizon: f64) {
        loop {
            let level = self.cross();
            self.pieces.push(Piece { from: self.now, volume: self.volume, level });
            let sharing = self.next_sharing();
            let shared = sharing.filter(|_| level > 0.0).map_or(f64::INFINITY, |first| {
                self.now + (first.number() - self.volume).max(0.0) / level
            });
            let first = self.next_capped();
            let capped = first.map(|first| first.number().max(self.now));
            let next = shared.min(capped.unwrap_or(f64::INFINITY));
            if next > horizon || next.is_infinite() {
                if horizon.is_finite() {
                    self.go(horizon, level);
                }
                return;
            }
            self.go(next, level);
            if capped.is_some_and(|at| at <= next) {
                self.end(first, Side::Capped);
            } else {
                self.end(sharing, Side::Sharing);
            }
        }
    }

    fn go(&mut self, to: f64, level: f64) {
        self.volume += level * (to - self.now);
        self.now = to;
    }

    /// The level of the sharing participants; 0 if there are none.
    fn level(&self) -> f64 {
        if self.sharing == 0 { 0.0 } else { ((self.capacity - self.caps) / self.weights).max(0.0) }
    }

    /// Moves participants that have reached their caps, and returns the level then. Each move raises the
    /// level, so this ends.
    fn cross(&mut self) -> f64 {
        let mut level = self.level();
        while let Some((threshold, higher)) = self.thresholds.split_first() {
            let index = threshold.place();
            if self.sides.get(index) == Some(&Side::Sharing) {
                if threshold.number() > level {
                    break;
                }
                self.cap(index);
                level = self.level();
            }
            self.thresholds = higher;
        }
        level
    }

    fn cap(&mut self, index: usize) {
        let Some(participant) = self.participants.get(index) else { return };
        if let Some(side) = self.sides.get_mut(index) {
            *side = Side::Capped;
        }
        if let Some(outcome) = self.outcomes.get_mut(index) {
            (outcome.capped, outcome.capped_volume) = (self.now, self.volume);
        }
        let left = (participant.left - participant.weight * self.volume).max(0.0);
        self.leave_sharing(participant.weight);
        self.caps += participant.cap;
        self.by_time.push(Reverse(Rank::new(self.now + left / participant.cap, index)));
    }

    fn leave_sharing(&mut self, weight: f64) {
        self.sharing -= 1;
        self.weights = if self.sharing == 0 { 0.0 } else { self.weights - weight };
    }

    fn is_of(&self, rank: Rank, side: Side) -> bool {
        self.sides.get(rank.place()) == Some(&side)
    }

    /// The sharing participant that ends first, by its volume then.
    fn next_sharing(&mut self) -> Option<Rank> {
        loop {
            let (first, later) = self.by_volume.split_first()?;
            if self.is_of(*first, Side::Sharing) {
                return Some(*first);
            }
            self.by_volume = later;
        }
    }

    /// The participant at its cap that ends first, by the time then.
    fn next_capped(&mut self) -> Option<Rank> {
        loop {
            let Reverse(first) = *self.by_time.peek()?;
            if self.is_of(first, Side::Capped) {
                return Some(first);
            }
            self.by_time.pop();
        }
    }

    /// Ends a participant of a side.
    fn end(&mut self, of: Option<Rank>, side: Side) {
        let Some(index) = of.map(Rank::place) else { return };
        let Some(participant) = self.participants.get(index) else { return };
        if let Some(outcome) = self.outcomes.get_mut(index) {
            (outcome.end, outcome.served) = (self.now, participant.left);
        }
        if let Some(now) = self.sides.get_mut(index) {
            *now = Side::Done;
        }
        if side == Side::Sharing {
            self.leave_sharing(participant.weight);
        } else {
            self.caps -= participant.cap;
        }
    }

    fn trajectory(mut self) -> Trajectory {
        for ((participant, side), outcome) in
            self.participants.iter().zip(&self.sides).zip(&mut self.outcomes)
        {
            let served = match side {
                Side::Done => continue,
                Side::Sharing => participant.weight * self.volume,
                Side::Capped => {
                    participant.weight * outcome.capped_volume
                        + participant.cap * (self.now - outcome.capped)
                }
            };
            outcome.served = served.min(participant.left);
        }
        Trajectory { outcomes: self.outcomes, pieces: self.pieces }
    }
}

impl Trajectory {
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

    fn participant(weight: f64, cap: f64, left: f64) -> Participant {
        Participant { weight, cap, left }
    }

    fn run(participants: &[Participant], capacity: f64, horizon: f64) -> Trajectory {
        Sharing::default().run(participants, capacity, horizon)
    }

    fn ends(participants: &[Participant], capacity: f64) -> Vec<f64> {
        run(participants, capacity, f64::INFINITY)
            .outcomes
            .iter()
            .map(|outcome| outcome.end)
            .collect()
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()))
    }

    #[test]
    fn parties_of_equal_weight_end_as_under_processor_sharing() {
        let all =
            [participant(1.0, 1.0, 1.0), participant(1.0, 1.0, 2.0), participant(1.0, 1.0, 4.0)];
        for (end, expected) in ends(&all, 1.0).into_iter().zip([3.0, 5.0, 7.0]) {
            assert!(near(end, expected), "{end} {expected}");
        }
    }

    #[test]
    fn party_at_its_cap_leaves_the_rest_to_others() {
        let all = [
            participant(1.0, 0.2, 1.0),
            participant(1.0, 1.0, 4.0),
            participant(1.0, 1.0, f64::INFINITY),
        ];
        let ends = ends(&all, 1.0);
        assert!(near(ends[0], 5.0) && near(ends[1], 9.0) && ends[2].is_infinite(), "{ends:?}");
    }

    #[test]
    fn no_work_is_done_without_capacity() {
        assert!(ends(&[participant(1.0, 1.0, 1.0)], 0.0)[0].is_infinite());
        assert!(near(ends(&[participant(1.0, 1.0, 0.0)], 0.0)[0], 0.0));
    }

    /// The same in small steps.
    fn stepped(participants: &[Participant], capacity: f64, horizon: f64) -> Vec<f64> {
        let mut served = vec![0.0; participants.len()];
        let steps = 20_000_u32;
        let dt = horizon / f64::from(steps);
        for _ in 0..steps {
            let there = participants
                .iter()
                .zip(&served)
                .filter(|(participant, served)| participant.left > **served);
            let level = level(there.map(|(participant, _)| *participant), capacity);
            for (participant, served) in participants.iter().zip(&mut served) {
                let rate = participant.cap.min(participant.weight * level);
                *served = (*served + rate * dt).min(participant.left);
            }
        }
        served
    }

    fn participants() -> impl Strategy<Value = Vec<Participant>> {
        let one = (0.2..4.0_f64, 0.05..1.0_f64, 0.0..8.0_f64);
        prop::collection::vec(
            one.prop_map(|(weight, cap, left)| participant(weight, cap, left)),
            1..8,
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn run_is_water_filling_over_time(
            participants in participants(), capacity in 0.2..1.0_f64, horizon in 0.1..20.0_f64,
        ) {
            let exact = run(&participants, capacity, horizon);
            for (outcome, small) in exact.outcomes.iter().zip(stepped(&participants, capacity, horizon)) {
                prop_assert!((outcome.served - small).abs() < 0.02, "{outcome:?} {small}");
            }
        }

        #[test]
        fn capacity_is_used_up_or_all_are_at_their_caps(
            participants in participants(), capacity in 0.2..1.0_f64,
        ) {
            let trajectory = run(&participants, capacity, f64::INFINITY);
            let last = trajectory.outcomes.iter().map(|outcome| outcome.end).fold(0.0, f64::max);
            prop_assert!(last.is_finite());
            let work: f64 = participants.iter().map(|participant| participant.left).sum();
            prop_assert!(work <= capacity * last + 1e-6);
            for (participant, outcome) in participants.iter().zip(&trajectory.outcomes) {
                prop_assert!(near(outcome.served, participant.left));
                prop_assert!(outcome.end + 1e-9 >= participant.left / participant.cap);
                prop_assert!(near(trajectory.volume_at(trajectory.time_of(0.3)), 0.3) || trajectory.time_of(0.3) >= last - 1e-9);
            }
        }
    }
}
