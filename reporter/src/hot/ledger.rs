//! Everything that a training loop reports, kept in atomics: nothing here waits, allocates or panics.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use paceline_wire::{Direction, Eval, Latency, Progress, Reached, Targets, Validation};

use crate::hot::clock::{Clock, Moment, nanos};
use crate::hot::histogram::{Counts, Histogram};
use crate::hot::slot::{Slot, Span};
use crate::hot::tally::{Tally, Totals};
use crate::hot::window::Window;

/// A larger loss is refused like infinity: so not even 2^64 losses overflow their sum.
const MAX_LOSS: f64 = 1e280;
/// The highest step that can be set. No further reports then overflow 63 bits.
const MAX_STEP: i64 = i64::MAX / 2;

/// What has been reported since the start.
#[derive(Debug)]
pub(crate) struct Ledger {
    clock: Clock,
    direction: Direction,
    targets: Targets,
    tally: Tally,
    /// How far the job's own count of steps is ahead of that of the tally.
    ahead: AtomicI64,
    window: Window,
    /// Durations of reports at the first stripe: one thread at a time.
    durations: Histogram,
    /// Durations of reports at the other stripes.
    further_durations: Histogram,
    first: Slot,
    last_duration: Span,
    updated_at: Span,
    acceptable_at: Span,
    objective_at: Span,
    /// The mean can reach the next target only before the loss of this number.
    hopeful_until: AtomicU64,
    dropped: AtomicU64,
    /// Losses of the training that are not finite.
    rejected: AtomicU64,
    validation: Tally,
    last_validation: Slot,
    validated_at: Span,
}

/// The contents of a [`Ledger`] at one moment.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) step: u64,
    /// Whether anything has been reported: an inference job has latencies but no loss.
    pub(crate) has_begun: bool,
    pub(crate) eval: Eval,
    pub(crate) latency: Latency,
    pub(crate) durations: Counts,
    pub(crate) reached: Reached,
    pub(crate) validation: Option<Validation>,
    pub(crate) dropped: u64,
    pub(crate) rejected: u64,
}

/// One report: a loss, a batch duration, or both.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) loss: Option<f64>,
    pub(crate) took: Option<Duration>,
}

/// Which targets an entry was the first to reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FirstReached {
    pub(crate) acceptable: bool,
    pub(crate) objective: bool,
}

impl Ledger {
    /// An empty ledger.
    pub(crate) fn new(clock: Clock, direction: Direction, targets: Targets, window: u32) -> Self {
        Self {
            clock,
            direction,
            targets,
            tally: Tally::default(),
            ahead: AtomicI64::new(0),
            window: Window::new(window),
            durations: Histogram::new(),
            further_durations: Histogram::new(),
            first: Slot::unknown(),
            last_duration: Span::unknown(),
            updated_at: Span::unknown(),
            acceptable_at: Span::unknown(),
            objective_at: Span::unknown(),
            hopeful_until: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            validation: Tally::default(),
            last_validation: Slot::unknown(),
            validated_at: Span::unknown(),
        }
    }

    /// The clock that stamps the reports.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Enters a report made at `now`.
    #[inline]
    pub(crate) fn enter(&self, Entry { loss, took }: Entry, now: Moment) -> FirstReached {
        let mut reached = FirstReached::default();
        let stored = self.tally.update(|totals, stripe| {
            if let Some(took) = took.map(nanos) {
                totals.batches += 1;
                totals.batch_nanos = totals.batch_nanos.saturating_add(took);
                match stripe {
                    0 => self.durations.record_alone(took),
                    _ => self.further_durations.record(took),
                }
                self.last_duration.set(took);
            }
            if let Some(loss) = loss {
                reached = self.step(totals, loss, self.clock.since_start(now));
            }
        });
        if !stored {
            self.drop_one();
        }
        reached
    }

    /// Enters the losses of several steps at once, oldest first. The last one is that of `last`, if that is
    /// given by one thread at a time: every reading has both or neither.
    pub(crate) fn enter_losses(
        &self,
        losses: &[f64],
        last: Option<u64>,
        now: Moment,
    ) -> FirstReached {
        let now = self.clock.since_start(now);
        let mut reached = FirstReached::default();
        let stored = self.tally.update(|totals, _| {
            let before = totals.step;
            for loss in losses {
                let step = self.step(totals, *loss, now);
                reached.acceptable |= step.acceptable;
                reached.objective |= step.objective;
            }
            if let Some(last) = last {
                let counted = self.tally.read(self.direction).step;
                let ahead = signed(last).saturating_sub(self.ahead.load(Ordering::Relaxed));
                totals.step = before.wrapping_add(unsigned(ahead)).wrapping_sub(counted);
            }
        });
        if !stored {
            for _ in losses {
                self.drop_one();
            }
        }
        reached
    }

    /// Adds a step to totals that no other thread uses.
    fn step(&self, totals: &mut Totals, loss: f64, now: Duration) -> FirstReached {
        totals.step = totals.step.wrapping_add(1);
        // The comparison is false for NaN.
        if loss.abs() <= MAX_LOSS {
            totals.add_loss(loss, self.direction);
            self.follow(loss, now)
        } else {
            self.rejected.fetch_add(1, Ordering::Relaxed);
            FirstReached::default()
        }
    }

    /// Keeps the recent losses and finds the first time that their mean reaches a target.
    fn follow(&self, loss: f64, now: Duration) -> FirstReached {
        self.first.set_once(loss);
        self.updated_at.set(nanos(now));
        let number = self.window.push(loss);
        let acceptable = self.targets.acceptable.filter(|_| self.acceptable_at.get().is_none());
        let objective = self.targets.objective.filter(|_| self.objective_at.get().is_none());
        // The acceptable loss is never the harder one.
        let Some(easiest) = acceptable.or(objective) else { return FirstReached::default() };
        // A mean cannot reach a target that none of its losses reaches, and comparing one loss is
        // cheaper than computing the mean.
        if self.direction.reached(loss, easiest) {
            self.hopeful_until.store(number + self.window.size(), Ordering::Relaxed);
        } else if number >= self.hopeful_until.load(Ordering::Relaxed) {
            return FirstReached::default();
        }
        self.latch(number, acceptable, objective, now)
    }

    /// Records `now` for each target that the mean of the losses up to `number` is the first to
    /// reach.
    #[inline(never)]
    fn latch(
        &self,
        number: u64,
        acceptable: Option<f64>,
        objective: Option<f64>,
        now: Duration,
    ) -> FirstReached {
        let Some(mean) = self.window.full_mean(number) else { return FirstReached::default() };
        let latch = |target: Option<f64>, at: &Span| {
            target.is_some_and(|target| self.direction.reached(mean, target)) && at.set_once(now)
        };
        FirstReached {
            acceptable: latch(acceptable, &self.acceptable_at),
            objective: latch(objective, &self.objective_at),
        }
    }

    /// Enters a loss on held-out data.
    pub(crate) fn validate(&self, loss: f64, now: Duration) {
        let stored = self.validation.update(|totals, _| {
            totals.step += 1;
            if loss.abs() <= MAX_LOSS {
                totals.add_loss(loss, self.direction);
                self.last_validation.set(loss);
                self.validated_at.set(nanos(now));
            }
        });
        if !stored {
            self.drop_one();
        }
    }

    /// Counts a report that found no free stripe.
    #[cold]
    pub(crate) fn drop_one(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Continues from `before`; must be called before the first report.
    pub(crate) fn resume(&self, before: &Progress) {
        let Progress { step, eval, batch_latency, reached, rejected, .. } = before;
        self.rejected.store(*rejected, Ordering::Relaxed);
        let stored = self.tally.update(|totals, _| {
            *totals = Totals {
                step: 0,
                losses: eval.count,
                loss_sum: eval.sum,
                best: eval.best.unwrap_or_default(),
                max_abs: eval.max_abs.unwrap_or_default(),
                batches: batch_latency.count,
                batch_nanos: nanos(
                    Duration::try_from_secs_f64(batch_latency.sum).unwrap_or_default(),
                ),
            };
        });
        debug_assert!(stored, "no other thread reports yet");
        self.set_step(step.unwrap_or(0));
        if let Some(first) = eval.first {
            self.first.set(first);
        }
        // The caller keeps the time itself, which is before this ledger's start.
        for (before, at) in [
            (reached.acceptable_at, &self.acceptable_at),
            (reached.objective_at, &self.objective_at),
        ] {
            if before.is_some() {
                at.set_once(Duration::ZERO);
            }
        }
    }

    /// Whether anything has been reported: an inference job has latencies but no loss.
    pub(crate) fn has_begun(&self) -> bool {
        begun(&self.tally.read(self.direction), self.rejected.load(Ordering::Relaxed))
    }

    /// The current step: one more with each loss, finite or not.
    pub(crate) fn position(&self) -> u64 {
        self.position_at(&self.tally.read(self.direction))
    }

    fn position_at(&self, totals: &Totals) -> u64 {
        let step = of_bits(totals.step).saturating_add(self.ahead.load(Ordering::Relaxed));
        u64::try_from(step).unwrap_or(0)
    }

    /// Sets the current step; further losses count from there. Of several threads, the last one sets it.
    pub(crate) fn set_step(&self, step: u64) {
        let counted = of_bits(self.tally.read(self.direction).step);
        self.ahead.store(signed(step).saturating_sub(counted), Ordering::Relaxed);
    }

    /// The mean of the last losses.
    pub(crate) fn recent(&self) -> Option<f64> {
        self.window.mean()
    }

    /// Everything reported so far. `loss_name` and `window` are copied into the result.
    pub(crate) fn read(&self, loss_name: &str, window: u32) -> Reading {
        // The totals come first: everything else that a counted report stored is then visible.
        let totals = self.tally.read(self.direction);
        let held_out = self.validation.read(self.direction);
        let rejected = self.rejected.load(Ordering::Relaxed);
        let durations = self.durations.counts().and(&self.further_durations.counts());
        let of_losses = |number: f64| (totals.losses > 0).then_some(number);
        let unix = |at: &Span| at.get().map(|at| self.clock.unix(at));
        Reading {
            step: self.position_at(&totals),
            has_begun: begun(&totals, rejected),
            eval: Eval {
                name: loss_name.to_owned(),
                direction: self.direction,
                value: self.window.mean(),
                window,
                updated_at: unix(&self.updated_at),
                count: totals.losses,
                sum: totals.loss_sum,
                first: self.first.get(),
                best: of_losses(totals.best),
                max_abs: of_losses(totals.max_abs),
            },
            latency: Latency {
                count: totals.batches,
                sum: Duration::from_nanos(totals.batch_nanos).as_secs_f64(),
                last: self.last_duration.get().map(|took| took.as_secs_f64()),
                p50: durations.percentile(50),
                p95: durations.percentile(95),
                p99: durations.percentile(99),
            },
            durations,
            reached: Reached {
                acceptable_at: unix(&self.acceptable_at),
                objective_at: unix(&self.objective_at),
            },
            validation: (held_out.losses > 0)
                .then(|| self.last_validation.get().zip(unix(&self.validated_at)))
                .flatten()
                .map(|(value, updated_at)| Validation {
                    value,
                    best: held_out.best,
                    count: held_out.losses,
                    updated_at,
                }),
            dropped: self.dropped.load(Ordering::Relaxed),
            rejected: rejected + (held_out.step - held_out.losses),
        }
    }
}

fn signed(step: u64) -> i64 {
    i64::try_from(step).unwrap_or(MAX_STEP).min(MAX_STEP)
}

/// A count that stripes may have brought below 0 for a moment.
fn of_bits(step: u64) -> i64 {
    i64::from_ne_bytes(step.to_ne_bytes())
}

fn unsigned(step: i64) -> u64 {
    u64::from_ne_bytes(step.to_ne_bytes())
}

fn begun(totals: &Totals, rejected: u64) -> bool {
    totals.losses > 0 || totals.batches > 0 || rejected > 0
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use proptest::prelude::*;

    use super::*;

    const TARGETS: Targets =
        Targets { acceptable: Some(10.0), objective: Some(5.0), batch_latency: None };

    fn ledger(direction: Direction, targets: Targets) -> Ledger {
        Ledger::new(Clock::start(), direction, targets, 2)
    }

    /// Enters losses a second apart.
    fn enter(ledger: &Ledger, losses: &[f64]) {
        for (second, loss) in (0..).zip(losses) {
            let entry = Entry { loss: Some(*loss), took: None };
            ledger.enter(entry, ledger.clock().moment(Duration::from_secs(second)));
        }
    }

    fn read(ledger: &Ledger) -> Reading {
        ledger.read("loss", 2)
    }

    #[test]
    fn nothing_is_known_before_the_first_report() {
        let reading = read(&ledger(Direction::Minimize, TARGETS));
        let Eval { value, updated_at, count, first, best, max_abs, .. } = reading.eval;
        assert_eq!((value, updated_at, first, best, max_abs), (None, None, None, None, None));
        assert_eq!((count, reading.step, reading.latency), (0, 0, Latency::default()));
    }

    #[test]
    fn a_target_is_latched_by_the_mean_of_a_full_window() {
        let ledger = ledger(Direction::Minimize, TARGETS);
        let at = |second| Some(ledger.clock().unix(Duration::from_secs(second)));
        enter(&ledger, &[4.0]);
        assert_eq!(
            read(&ledger).reached,
            Reached::default(),
            "one report does not fill the window"
        );
        // The means are 13, 14, 8, 5 and 52.
        enter(&ledger, &[22.0, 6.0, 10.0, 0.0, 104.0]);
        let expected = Reached { acceptable_at: at(2), objective_at: at(3) };
        assert_eq!(read(&ledger).reached, expected);
    }

    #[test]
    fn a_loss_on_held_out_data_is_kept_apart() {
        let ledger = ledger(Direction::Minimize, TARGETS);
        enter(&ledger, &[50.0]);
        assert_eq!(read(&ledger).validation, None);
        for loss in [4.0, f64::NAN, 6.0] {
            ledger.validate(loss, Duration::from_secs(1));
        }
        let Validation { value, best, count, updated_at } = read(&ledger).validation.unwrap();
        assert_eq!((value, best, count), (6.0, 4.0, 2));
        assert_eq!(Some(updated_at), Some(ledger.clock().unix(Duration::from_secs(1))));
        assert_eq!((read(&ledger).eval.count, read(&ledger).rejected), (1, 1));
        assert_eq!(read(&ledger).reached, Reached::default(), "only the training loss counts");
    }

    #[test]
    fn a_larger_target_is_reached_from_below() {
        let targets = Targets { acceptable: Some(0.8), objective: Some(0.9), batch_latency: None };
        let ledger = ledger(Direction::Maximize, targets);
        enter(&ledger, &[0.1, 0.85, 0.85]);
        let reached = read(&ledger).reached;
        assert!(reached.acceptable_at.is_some() && reached.objective_at.is_none());
    }

    #[test]
    fn nonfinite_losses_are_counted_and_kept_out() {
        let ledger = ledger(Direction::Minimize, TARGETS);
        enter(&ledger, &[f64::NAN, 3.0, f64::INFINITY, f64::NEG_INFINITY, f64::MAX]);
        let reading = read(&ledger);
        assert_eq!((reading.rejected, reading.step, reading.dropped), (4, 5, 0));
        assert_eq!((reading.eval.count, reading.eval.sum), (1, 3.0));
        assert_eq!((reading.eval.value, reading.eval.max_abs), (Some(3.0), Some(3.0)));
    }

    #[test]
    fn batch_without_a_loss_does_not_count_as_a_step() {
        let ledger = ledger(Direction::Minimize, TARGETS);
        ledger.enter(Entry { loss: None, took: Some(Duration::from_millis(20)) }, Clock::now());
        let reading = read(&ledger);
        assert_eq!((reading.step, reading.latency.count, reading.eval.count), (0, 1, 0));
        assert_eq!((reading.latency.sum, reading.latency.last), (0.02, Some(0.02)));
    }

    #[test]
    fn losses_that_come_together_are_entered_as_they_are_one_by_one() {
        let losses = [22.0, 6.0, f64::NAN, 10.0, 0.0, 104.0];
        let [single, together] = [(); 2].map(|()| ledger(Direction::Minimize, TARGETS));
        enter(&single, &losses);
        let reached = together.enter_losses(&losses, None, together.clock().moment(Duration::ZERO));
        assert_eq!(reached, FirstReached { acceptable: true, objective: true });
        let (single, together) = (read(&single), read(&together));
        let counts = |reading: &Reading| (reading.step, reading.rejected, reading.dropped);
        assert_eq!(counts(&together), counts(&single));
        let eval = |reading: Reading| Eval { updated_at: None, ..reading.eval };
        assert_eq!(eval(together), eval(single));
    }

    /// Each step has two losses, as where a bar is drawn twice.
    #[test]
    fn losses_and_their_step_are_in_every_reading_or_neither() {
        const LOSSES: u64 = 20_000;
        let ledger = ledger(Direction::Minimize, TARGETS);
        enter(&ledger, &[50.0]);
        thread::scope(|scope| {
            scope.spawn(|| {
                for count in 2..=LOSSES {
                    ledger.enter_losses(&[50.0], Some(count.div_ceil(2)), Clock::now());
                }
            });
            loop {
                let Reading { step, eval, .. } = read(&ledger);
                assert_eq!(step, eval.count.div_ceil(2));
                if eval.count == LOSSES {
                    break;
                }
            }
        });
    }

    #[test]
    fn a_set_step_counts_for_all_threads_and_never_overflows() {
        let most = MAX_STEP.unsigned_abs();
        let ledger = ledger(Direction::Minimize, TARGETS);
        let report = |totals: &mut Totals| totals.step += 3;
        // Another thread has the first stripe.
        assert!(
            ledger.tally.update(|_, _| assert!(ledger.tally.update(|totals, _| report(totals))))
        );
        for (set, then) in [(1, 2), (0, 1), (70, 71), (u64::MAX, most + 1), (5, 6)] {
            ledger.enter_losses(&[], Some(set), Clock::now());
            assert_eq!(read(&ledger).step, set.min(most));
            ledger.set_step(set);
            assert_eq!(read(&ledger).step, set.min(most));
            enter(&ledger, &[4.0]);
            assert_eq!(read(&ledger).step, then);
        }
    }

    proptest! {
        #[test]
        fn reading_is_sum_of_losses(
            losses in prop::collection::vec(any::<f64>(), 1..50)
        ) {
            let ledger = ledger(Direction::Minimize, TARGETS);
            enter(&ledger, &losses);
            let mut kept = losses.clone();
            kept.retain(|loss| loss.abs() <= MAX_LOSS);
            let reading = read(&ledger);
            prop_assert_eq!(reading.eval.count + reading.rejected, reading.step);
            let count = u64::try_from(kept.len()).unwrap();
            let sum = kept.iter().fold(0.0, |sum, loss| sum + loss);
            prop_assert_eq!((reading.eval.count, reading.eval.sum), (count, sum));
            prop_assert_eq!(reading.eval.first, kept.first().copied());
            prop_assert_eq!(reading.eval.best, kept.iter().copied().reduce(f64::min));
        }

        /// In any interleaving of threads, every entry counts exactly once.
        #[test]
        fn threads_sum_to_their_entries(
            threads in prop::collection::vec(
                prop::collection::vec((-1000_i32..1000, 0_u64..3_000_000_000), 0..200),
                1..5,
            )
        ) {
            let ledger = ledger(Direction::Minimize, TARGETS);
            let barrier = Barrier::new(threads.len());
            let (ledger, start) = (&ledger, &barrier);
            thread::scope(|scope| {
                for entries in &threads {
                    scope.spawn(move || {
                        start.wait();
                        for (loss, took) in entries {
                            let took = Some(Duration::from_nanos(*took));
                            ledger.enter(
                                Entry { loss: Some(f64::from(*loss)), took },
                                Clock::now(),
                            );
                        }
                    });
                }
            });
            let all: Vec<_> = threads.concat();
            let reading = read(ledger);
            let count = u64::try_from(all.len()).unwrap();
            prop_assert_eq!((reading.step, reading.eval.count, reading.dropped), (count, count, 0));
            let sum: i32 = all.iter().map(|(loss, _)| loss).sum();
            let best = all.iter().map(|(loss, _)| f64::from(*loss)).reduce(f64::min);
            prop_assert_eq!((reading.eval.sum, reading.eval.best), (f64::from(sum), best));
            for bound in [1_000, 1_000_000, 250_000_000, 1_000_000_000] {
                let below = all.iter().filter(|(_, took)| *took <= bound).count();
                prop_assert_eq!(reading.durations.at_most(bound), u64::try_from(below).unwrap());
            }
            let nanos: u64 = all.iter().map(|(_, took)| took).sum();
            let seconds = Duration::from_nanos(nanos).as_secs_f64();
            prop_assert_eq!((reading.latency.count, reading.latency.sum), (count, seconds));
        }
    }
}
