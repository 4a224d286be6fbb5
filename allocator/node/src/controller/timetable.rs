//! The times at which a controller acts. Pure: a time goes in, and what is due then comes out.
//!
//! Each action has its own time:
//! - the survey of the container engine;
//! - the sample of all jobs, at whole multiples of its interval, and an earlier one for urgent news;
//! - the policy's next run, and the requests to endpoints before it.
//!
//! Changes that follow each other within [`COALESCE`] are handled together.

use std::time::Duration;

use paceline_policy::Moment;

use super::timing::Timing;

/// Changes within this time are handled together.
pub(super) const COALESCE: Duration = Duration::from_millis(20);
/// How often to check whether all endpoints have answered, in seconds.
const CHECK_INTERVAL: f64 = 0.005;
/// Between runs of the policy that follow each other sooner, in seconds, there may be no sample. If
/// a target needs the batches that began and ended between two runs, endpoints are asked at the
/// midpoint …
const MAX_UNSAMPLED: f64 = 2.0;
/// … and a sample follows so much later, in seconds.
const ANSWER_DELAY: f64 = 0.05;

/// The time at which each action is due.
#[derive(Clone, Debug)]
pub(super) struct Timetable {
    timing: Timing,
    /// The container engine is asked which containers exist.
    survey_at: Moment,
    /// A survey describes all containers again, the known ones included.
    reconcile_at: Moment,
    /// All jobs are sampled, and their figures renewed.
    sample_at: Moment,
    /// Jobs are sampled before that, because of urgent news.
    urgent_at: Option<Moment>,
    /// The policy runs early.
    decide_at: Option<Moment>,
    /// The policy runs at the time that it has asked for.
    wake_at: Option<Moment>,
    /// Endpoints are asked between two runs of the policy.
    midpoint_at: Option<Moment>,
    /// When the policy ran last.
    decided_at: Option<Moment>,
    asking: Option<Asking>,
}

/// Endpoints were asked before a run of the policy.
#[derive(Clone, Copy, Debug)]
struct Asking {
    check_at: Moment,
    until: Moment,
}

/// The inputs of a turn, besides the time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Inputs {
    /// Whether all endpoints that were asked have answered.
    pub(super) answered: bool,
    /// Whether a target needs the batches between two runs of the policy.
    pub(super) awaits_batches: bool,
}

/// The actions that are due at a turn, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Turn {
    /// The container engine is asked which containers exist.
    pub(super) survey: bool,
    /// Every endpoint is asked.
    pub(super) ask: bool,
    /// Jobs are sampled, which may bring a run of the policy forward.
    pub(super) sample: Option<Sample>,
}

/// A sample of the jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    /// Whether it is the regular one, which renews the figures.
    pub(super) whole: bool,
    /// Whether the first run of the policy still waited for answers: see [`Timetable::gathers`].
    gathers: bool,
    /// Whether the policy's own time has come.
    due: bool,
}

impl Timetable {
    pub(super) fn new(timing: Timing) -> Self {
        Self {
            timing,
            survey_at: Moment::default(),
            reconcile_at: Moment::default(),
            sample_at: Moment::default(),
            urgent_at: None,
            decide_at: None,
            wake_at: None,
            midpoint_at: None,
            decided_at: None,
            asking: None,
        }
    }

    /// When the next action is due.
    pub(super) fn next(&self) -> Moment {
        let wake_at = self.asking.map(|asking| asking.check_at).or(self.wake_at);
        // While the first answers are gathered, the policy does not run.
        let decide_at = self.decide_at.filter(|_| !self.gathers());
        let due = [self.urgent_at, decide_at, wake_at, self.midpoint_at].into_iter().flatten();
        due.fold(self.survey_at.min(self.sample_at), Moment::min)
    }

    /// The actions that are due now.
    pub(super) fn turn(&mut self, now: Moment, inputs: Inputs) -> Turn {
        let survey = now >= self.survey_at;
        let midpoint = is_past(now, self.midpoint_at);
        let mut ask = false;
        if midpoint {
            self.midpoint_at = None;
            if inputs.awaits_batches {
                ask = true;
                self.sample_by(now.after(ANSWER_DELAY));
            }
        }
        let gathers = self.gathers();
        let mut due = false;
        if let Some(asking) = &mut self.asking {
            asking.check_at = now.after(CHECK_INTERVAL);
            due = now >= asking.until || inputs.answered && !ask;
        } else if is_past(now, self.wake_at) {
            ask = true;
            self.asked(now);
        }
        let whole = now >= self.sample_at;
        let urgent = is_past(now, self.urgent_at) || is_past(now, self.decide_at) && !gathers;
        let sample = (whole || due || urgent).then_some(Sample { whole, gathers, due });
        if sample.is_some() {
            self.urgent_at = None;
        }
        Turn { survey, ask, sample }
    }

    /// Whether the policy runs after a sample that began at `began` and ended `now`.
    pub(super) fn decides(&mut self, sample: Sample, began: Moment, now: Moment) -> bool {
        let Sample { gathers, due, .. } = sample;
        if gathers && due {
            self.asking = None;
        }
        let decides = if gathers {
            due && self.decide_at.is_some()
        } else {
            due || is_past(now, self.decide_at)
        };
        if decides {
            (self.decide_at, self.decided_at) = (None, Some(began));
        }
        decides
    }

    /// Whether a survey that begins now describes all containers again.
    pub(super) fn is_of_all(&self, now: Moment) -> bool {
        now >= self.reconcile_at
    }

    /// A survey has begun.
    pub(super) fn surveys(&mut self, now: Moment, all: bool) {
        if all {
            self.reconcile_at = now.after(self.timing.reconcile.as_secs_f64());
        }
        self.survey_at = self.reconcile_at;
    }

    /// Another survey is under way: the next one waits.
    pub(super) fn survey_waits(&mut self, now: Moment) {
        self.survey_at = now.after(COALESCE.as_secs_f64());
    }

    /// A container has changed.
    pub(super) fn touched(&mut self, now: Moment) {
        self.survey_at = self.survey_at.min(now.after(COALESCE.as_secs_f64()));
    }

    /// A survey is due at once.
    pub(super) fn survey_now(&mut self, now: Moment) {
        self.survey_at = now;
    }

    /// All jobs were sampled. Samples are due at whole multiples of the interval, so that they do
    /// not drift. A missed one is not repeated.
    pub(super) fn sampled(&mut self, now: Moment) {
        let interval = self.timing.sample.as_secs_f64();
        let next = ((now.seconds() / interval).floor() + 1.0) * interval;
        self.sample_at = Moment::from_seconds(next);
    }

    /// Every endpoint was asked. The policy runs when all have answered, or after a timeout.
    pub(super) fn asked(&mut self, now: Moment) {
        let (check_at, until) =
            (now.after(CHECK_INTERVAL), now.after(self.timing.answers.as_secs_f64()));
        self.asking = Some(Asking { check_at, until });
    }

    /// The policy has run, and asks to run again at `at`.
    pub(super) fn wakes(&mut self, now: Moment, at: Moment) {
        (self.wake_at, self.asking) = (Some(at), None);
        let seconds = at.seconds_since(now);
        self.midpoint_at = (seconds < MAX_UNSAMPLED).then(|| now.after(seconds / 2.0));
    }

    /// The policy runs as soon as possible.
    pub(super) fn decide_soon(&mut self, now: Moment) {
        let at = self.soonest(now);
        self.decide_at = Some(self.decide_at.map_or(at, |before| before.min(at)));
    }

    /// The policy runs at once.
    pub(super) fn decide(&mut self, now: Moment) {
        self.decide_at = Some(now);
    }

    /// A job has appeared. The policy waits a moment, as other jobs may appear with it.
    pub(super) fn appeared(&mut self, now: Moment) {
        self.decide_at.get_or_insert(now.after(COALESCE.as_secs_f64()));
    }

    /// Jobs are sampled as soon as possible. The policy runs afterwards if the sample shows news.
    pub(super) fn sample_soon(&mut self, now: Moment) {
        self.sample_by(self.soonest(now));
    }

    fn sample_by(&mut self, at: Moment) {
        self.urgent_at = Some(self.urgent_at.map_or(at, |before| before.min(at)));
    }

    /// `now`, or later if the policy ran within [`COALESCE`].
    fn soonest(&self, now: Moment) -> Moment {
        self.decided_at.map_or(now, |at| at.after(COALESCE.as_secs_f64()).max(now))
    }

    /// Whether the first run of the policy waits for the jobs that were running before this run.
    /// They appear together: otherwise the policy would treat all but the first as newcomers.
    fn gathers(&self) -> bool {
        self.decided_at.is_none() && self.asking.is_some()
    }
}

fn is_past(now: Moment, at: Option<Moment>) -> bool {
    at.is_some_and(|at| now >= at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Turn = Turn { survey: false, ask: false, sample: None };
    const WAITING: Inputs = Inputs { answered: false, awaits_batches: false };
    const ANSWERED: Inputs = Inputs { answered: true, awaits_batches: false };

    fn at(seconds: f64) -> Moment {
        Moment::from_seconds(seconds)
    }

    /// A timetable that did everything at 0, and whose policy asks to run again at 3.
    fn settled() -> Timetable {
        let mut table = Timetable::new(Timing::default());
        let turn = table.turn(at(0.0), WAITING);
        assert!(turn.survey && turn.sample.is_some_and(|sample| sample.whole));
        table.surveys(at(0.0), true);
        table.sampled(at(0.0));
        table.decide_soon(at(0.0));
        assert!(table.decides(turn.sample.unwrap(), at(0.0), at(0.0)));
        table.wakes(at(0.0), at(3.0));
        table
    }

    #[test]
    fn each_action_is_due_at_its_time() {
        let sample = |whole, due| Some(Sample { whole, gathers: false, due });
        for (now, turn) in [
            (0.5, NOTHING),
            (1.0, Turn { sample: sample(true, false), ..NOTHING }),
            (3.0, Turn { ask: true, sample: sample(true, false), ..NOTHING }),
            (10.0, Turn { survey: true, ask: true, sample: sample(true, false) }),
        ] {
            assert_eq!(settled().turn(at(now), WAITING), turn, "{now}");
        }
        assert_eq!(settled().next(), at(1.0));
    }

    #[test]
    fn samples_are_at_whole_seconds_and_missed_ones_skipped() {
        for (now, next) in [(0.0, 1.0), (0.2, 1.0), (7.999, 8.0), (8.0, 9.0), (10.3, 11.0)] {
            let mut table = settled();
            table.sampled(at(now));
            assert_eq!(table.sample_at, at(next), "{now}");
        }
    }

    #[test]
    fn policy_runs_once_all_have_answered_or_after_timeout() {
        for (now, inputs, runs) in [
            (3.1, WAITING, false),
            (3.1, ANSWERED, true),
            (3.79, WAITING, false),
            (3.81, WAITING, true),
        ] {
            let mut table = settled();
            table.sampled(at(3.0));
            assert!(table.turn(at(3.0), WAITING).ask);
            assert_eq!(table.next(), at(3.005), "the next check is soon");
            let sample = table.turn(at(now), inputs).sample;
            let decides = sample.is_some_and(|sample| table.decides(sample, at(now), at(now)));
            assert_eq!(decides, runs, "{now} {inputs:?}");
        }
    }

    #[test]
    fn changes_within_a_moment_are_handled_together() {
        let mut table = settled();
        table.touched(at(0.5));
        table.touched(at(0.51));
        assert_eq!(table.next(), at(0.52));
        table.appeared(at(0.505));
        table.appeared(at(0.51));
        assert!(table.turn(at(0.521), WAITING).survey);
        let sample = table.turn(at(0.53), WAITING).sample.unwrap();
        assert!(table.decides(sample, at(0.53), at(0.53)));
        // Another change waits until the moment is over.
        table.decide_soon(at(0.535));
        table.sample_soon(at(0.536));
        assert_eq!(table.next(), at(0.55).min(table.survey_at));
        assert_eq!(table.turn(at(0.54), WAITING).sample, None);
        assert!(table.turn(at(0.55), WAITING).sample.is_some());
    }

    #[test]
    fn first_run_waits_for_jobs_that_ran_before() {
        let mut table = Timetable::new(Timing::default());
        table.turn(at(0.0), WAITING);
        table.surveys(at(0.0), true);
        table.sampled(at(0.0));
        table.asked(at(0.1));
        table.appeared(at(0.1));
        assert_eq!(table.turn(at(0.2), WAITING).sample, None);
        let sample = table.turn(at(0.3), ANSWERED).sample.unwrap();
        assert!(table.decides(sample, at(0.3), at(0.3)));
        // If none of them is a job, the policy does not run, and runs at once for the next job.
        let mut table = Timetable::new(Timing::default());
        table.turn(at(0.0), WAITING);
        table.sampled(at(0.0));
        table.asked(at(0.1));
        let sample = table.turn(at(0.3), ANSWERED).sample.unwrap();
        assert!(!table.decides(sample, at(0.3), at(0.3)) && table.asking.is_none());
    }

    #[test]
    fn endpoints_are_asked_at_the_midpoint_of_close_runs() {
        let batches = Inputs { awaits_batches: true, ..WAITING };
        for (inputs, asks) in [(batches, true), (WAITING, false)] {
            let mut table = settled();
            table.wakes(at(0.1), at(1.1));
            assert_eq!(table.next(), at(0.6));
            assert_eq!(table.turn(at(0.6), inputs), Turn { ask: asks, ..NOTHING }, "{inputs:?}");
            assert_eq!(table.next(), at(if asks { 0.65 } else { 1.0 }));
        }
        let mut table = settled();
        table.wakes(at(0.1), at(5.0));
        assert_eq!(table.midpoint_at, None);
    }

    #[test]
    fn policy_runs_after_a_sample_with_urgent_news() {
        let mut table = settled();
        let sample = table.turn(at(1.0), WAITING).sample.unwrap();
        assert!(!table.clone().decides(sample, at(1.0), at(1.001)));
        table.decide(at(1.001));
        assert!(table.decides(sample, at(1.0), at(1.001)));
    }

    #[test]
    fn survey_of_all_is_repeated_and_blocked_one_waits() {
        let mut table = settled();
        assert!(!table.is_of_all(at(9.9)) && table.is_of_all(at(10.0)));
        table.touched(at(5.0));
        table.surveys(at(5.02), false);
        assert_eq!(table.survey_at, at(10.0));
        table.survey_waits(at(10.0));
        assert_eq!(table.survey_at, at(10.02));
        table.survey_now(at(7.0));
        assert_eq!(table.survey_at, at(7.0));
    }
}
