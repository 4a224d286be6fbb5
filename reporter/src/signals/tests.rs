use paceline_wire::{Activity, Direction, Forecast, ForecastSteps, Health, State, Targets};
use proptest::prelude::*;

use super::samples::{Job, Random, STARTED, TRAINING, progress};
use super::*;

/// Losses from 3 to 1 along a power of the steps, with noise.
fn losses(steps: u32) -> Vec<f64> {
    let mut random = Random::new(1);
    (0..steps)
        .map(|step| 1.0 + 2.0 * (1.0 + f64::from(step) / 20.0).powf(-0.7) + 0.05 * random.normal())
        .collect()
}

fn objective(objective: f64) -> Targets {
    Targets { objective: Some(objective), ..Targets::default() }
}

#[test]
fn nothing_is_known_before_the_first_report() {
    let mut job = Job::new();
    job.wait(20.0);
    let progress = Progress { targets: objective(1.0), ..job.progress() };
    assert_eq!(derive(&job.history, &progress, TRAINING), Signals::default());
    assert_eq!(derive(&History::new(), &progress, TRAINING), Signals::default());
}

#[test]
fn a_job_half_way_through_knows_it() {
    let job = Job::with_losses(&losses(1000), 20.0);
    let progress = Progress { total_steps: Some(2000), ..job.progress() };
    let signals = derive(&job.history, &progress, TRAINING);
    assert_eq!((signals.activity, signals.health), (Activity::Training, Health::Fine));
    assert_eq!((signals.progress_ratio, signals.to_objective), (Some(0.5), None));
    assert_eq!(signals.quiet_seconds, Some(0.0));
    let near = |value: Option<f64>, expected: f64, by: f64| {
        assert!(value.is_some_and(|value| (value - expected).abs() < by), "{value:?} {expected}");
    };
    near(signals.steps_per_second, 20.0, 0.1);
    near(signals.eta_seconds, 50.0, 0.3);
    near(signals.loss_smoothed, 1.0 + 2.0 * 51_f64.powf(-0.7), 0.03);
    near(signals.loss_slope, -0.07 * 51_f64.powf(-1.7), 1e-4);
}

#[test]
fn ended_job_has_no_time_left() {
    let job = Job::with_losses(&losses(1000), 20.0);
    for state in [State::Finished, State::Failed] {
        let progress =
            Progress { state, total_steps: Some(2000), targets: objective(1.1), ..job.progress() };
        let signals = derive(&job.history, &progress, TRAINING);
        assert_eq!(signals.activity, Activity::Ended);
        assert_eq!((signals.steps_per_second, signals.eta_seconds), (None, None));
        assert_eq!((signals.to_objective, signals.progress_ratio), (None, Some(0.5)));
    }
}

#[test]
fn a_forecast_needs_an_objective_that_is_still_ahead() {
    let job = Job::with_losses(&losses(1000), 20.0);
    let ahead = Progress { targets: objective(1.08), ..job.progress() };
    let forecast = derive(&job.history, &ahead, TRAINING).to_objective.unwrap();
    assert!(forecast.low < forecast.seconds && forecast.seconds < forecast.high, "{forecast:?}");

    let mut reached = ahead.clone();
    reached.reached.objective_at = Some(STARTED);
    assert_eq!(derive(&job.history, &reached, TRAINING).to_objective, None);
    let early = Job::with_losses(&losses(19), 4.0);
    assert_eq!(derive(&early.history, &ahead, TRAINING).to_objective, None, "19 losses");
}

#[test]
fn unreachable_target_is_never_reached() {
    let job = Job::with_losses(&losses(1000), 20.0);
    let progress = Progress { targets: objective(-1e9), ..job.progress() };
    let steps = Some(ForecastSteps { low: None, median: None, high: None });
    let never = Forecast { seconds: None, low: None, high: None, steps };
    assert_eq!(derive(&job.history, &progress, TRAINING).to_objective, Some(never));
}

#[test]
fn a_reward_is_a_loss_upside_down() {
    let (losses, rewards): (Vec<f64>, Vec<f64>) =
        losses(1000).into_iter().map(|loss| (loss - 4.0, 4.0 - loss)).unzip();
    let [down, up] = [(losses, -2.92, Direction::Minimize), (rewards, 2.92, Direction::Maximize)]
        .map(|(losses, target, direction)| {
            let job = Job::with_losses(&losses, 20.0);
            let mut progress = Progress { targets: objective(target), ..job.progress() };
            progress.eval.direction = direction;
            derive(&job.history, &progress, TRAINING)
        });
    assert_eq!(down.to_objective, up.to_objective);
    assert_eq!(down.loss_smoothed.map(|loss| -loss), up.loss_smoothed);
}

#[test]
fn acceptable_loss_has_a_forecast_until_it_is_reached() {
    let job = Job::with_losses(&losses(1000), 20.0);
    let targets = Targets { acceptable: Some(1.1), ..objective(1.08) };
    let ahead = Progress { targets, ..job.progress() };
    let signals = derive(&job.history, &ahead, TRAINING);
    let [acceptable, objective] =
        [signals.to_acceptable, signals.to_objective].map(|forecast| forecast.unwrap());
    assert!(acceptable.seconds < objective.seconds, "{acceptable:?} {objective:?}");
    let only = Progress { targets: Targets { acceptable: Some(1.08), ..targets }, ..ahead.clone() };
    let same = derive(&job.history, &only, TRAINING);
    assert_eq!(same.to_acceptable, signals.to_objective);

    let mut reached = ahead;
    reached.reached.acceptable_at = Some(STARTED);
    let signals = derive(&job.history, &reached, TRAINING);
    assert_eq!((signals.to_acceptable, signals.to_objective), (None, Some(objective)));
}

#[test]
fn steps_of_a_forecast_are_its_seconds_by_the_pace() {
    let job = Job::with_losses(&losses(1000), 20.0);
    let progress = Progress { targets: objective(1.08), ..job.progress() };
    let signals = derive(&job.history, &progress, TRAINING);
    let (forecast, rate) = (signals.to_objective.unwrap(), signals.steps_per_second.unwrap());
    let steps = forecast.steps.unwrap();
    for (steps, seconds) in
        [(steps.low, forecast.low), (steps.median, forecast.seconds), (steps.high, forecast.high)]
    {
        let (steps, seconds) = (steps.unwrap(), seconds.unwrap());
        assert!((steps / (seconds * rate) - 1.0).abs() < 1e-9, "{steps} {seconds}");
    }
}

/// A job that waits for CPU is far slower, but has as many steps left as before.
#[test]
fn steps_of_a_forecast_do_not_follow_the_pace() {
    let losses = losses(1200);
    let [fast, waiting] = [20.0, 0.2].map(|rate| {
        let mut job = Job::with_losses(&losses[..1000], 20.0);
        job.train(&losses[1000..1010], rate);
        let progress = Progress { targets: objective(1.08), ..job.progress() };
        derive(&job.history, &progress, TRAINING).to_objective.unwrap()
    });
    let steps = [fast, waiting].map(|forecast| forecast.steps.unwrap().median.unwrap());
    assert!((steps[0] / steps[1] - 1.0).abs() < 0.2, "{steps:?}");
    assert!(waiting.seconds.unwrap() > 20.0 * fast.seconds.unwrap(), "{fast:?} {waiting:?}");
}

#[test]
fn seconds_follow_the_speed() {
    let [slow, fast] = [10.0, 40.0].map(|rate| {
        let job = Job::with_losses(&losses(1000), rate);
        let progress = Progress { targets: objective(1.08), ..job.progress() };
        derive(&job.history, &progress, TRAINING).to_objective.unwrap().seconds.unwrap()
    });
    assert!((2.5..6.0).contains(&(slow / fast)), "{slow} {fast}");
}

/// Every kind of number, and samples in any order.
fn any_history() -> impl Strategy<Value = History> {
    let value = prop_oneof![
        4 => -10.0..10.0_f64,
        1 => any::<f64>(),
        1 => Just(1e280),
        1 => Just(0.0),
    ];
    let sample = (value.clone(), value, 0..40_u64, 0..3_u64, any::<bool>(), 0..50_u32);
    let rule = prop_oneof![
        8 => Just(0_u8),
        1 => any::<u8>(),
    ];
    prop::collection::vec((sample, rule), 0..400).prop_map(|samples| {
        let mut history = History::new();
        let mut last = Sample::default();
        for ((passed, loss, steps, rejected, paused, far), rule) in samples {
            last.at += if rule == 0 { passed.abs().min(1.0) } else { passed };
            last.step = last.step.saturating_add(if rule == 1 { u64::MAX } else { steps });
            last.count = last.count.saturating_add(if rule == 2 { u64::MAX } else { steps });
            last.sum += loss * number(steps);
            last.rejected = last.rejected.saturating_add(rejected / 2);
            last.paused = paused && far == 0;
            if rule == 3 {
                (last.step, last.count) = (0, 0);
            }
            history.push(last);
            if !last.at.is_finite() || !last.sum.is_finite() {
                last = Sample { at: 0.0, sum: 0.0, ..last };
            }
        }
        history
    })
}

fn any_progress() -> impl Strategy<Value = Progress> {
    let seconds = prop_oneof![3 => 0.0..1e4_f64, 1 => any::<f64>()];
    let target = prop_oneof![3 => -10.0..10.0_f64, 1 => any::<f64>()];
    let target = (target.clone(), target);
    let counts = (any::<Option<u64>>(), any::<Option<u64>>(), 0..5_u64, 0..1000_u32);
    (seconds, target, counts, any::<bool>(), any::<Option<f64>>()).prop_map(
        |(seconds, (acceptable, target), (step, total_steps, rejected, window), up, updated_at)| {
            let mut progress = progress();
            progress.now += seconds;
            progress.targets.objective = Some(target);
            progress.targets.acceptable = Some(acceptable);
            (progress.step, progress.total_steps) = (step, total_steps);
            progress.rejected = rejected;
            progress.eval.window = window;
            progress.eval.updated_at = updated_at;
            if up {
                progress.eval.direction = Direction::Maximize;
            }
            progress
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn only_finite_numbers_come_out(
        history in any_history(),
        progress in any_progress(),
        since in any::<f64>(),
    ) {
        for task in [Task::Training, Task::Evaluating] {
            let signals = derive(&history, &progress, Doing { task, since });
            let Signals { loss_smoothed, loss_slope, .. } = signals;
            for any in [loss_smoothed, loss_slope].into_iter().flatten() {
                prop_assert!(any.is_finite(), "{signals:?}");
            }
            let mut positive = vec![
                signals.quiet_seconds, signals.steps_per_second, signals.progress_ratio,
                signals.eta_seconds,
            ];
            let ordered = |a: Option<f64>, b: Option<f64>| b.is_none() || a.is_some() && a <= b;
            for forecast in [signals.to_acceptable, signals.to_objective].into_iter().flatten() {
                let Forecast { low, seconds, high, steps } = forecast;
                let ForecastSteps { low: fewest, median, high: most } = steps.unwrap();
                for [low, middle, high] in [[low, seconds, high], [fewest, median, most]] {
                    prop_assert!(ordered(low, middle) && ordered(middle, high), "{forecast:?}");
                    positive.extend([low, middle, high]);
                }
            }
            for any in positive.into_iter().flatten() {
                prop_assert!(any.is_finite() && any >= 0.0, "{signals:?}");
            }
            prop_assert!(signals.progress_ratio.is_none_or(|ratio| ratio <= 1.0));
        }
    }

    #[test]
    fn the_unit_of_the_loss_does_not_matter(
        losses in prop::collection::vec(0.5..2.0_f64, 30..200),
        power in -20..20_i32,
    ) {
        let unit = 2_f64.powi(power);
        let [one, other] = [1.0, unit].map(|unit| {
            let scaled: Vec<f64> = losses.iter().map(|loss| loss * unit).collect();
            let job = Job::with_losses(&scaled, 7.0);
            let progress = Progress { targets: objective(0.7 * unit), ..job.progress() };
            derive(&job.history, &progress, TRAINING)
        });
        let expected = Signals {
            loss_smoothed: one.loss_smoothed.map(|loss| loss * unit),
            loss_slope: one.loss_slope.map(|slope| slope * unit),
            ..one
        };
        prop_assert_eq!(expected, other);
    }

    /// Quarters of seconds and powers of two add up exactly.
    #[test]
    fn it_does_not_matter_when_a_job_begins(
        losses in prop::collection::vec(0.5..2.0_f64, 30..200),
        power in 0..16_i32,
    ) {
        let [one, other] = [0.0, 2_f64.powi(power)].map(|shift| {
            let mut job = Job { history: History::new(), sample: Sample::default() };
            for (quarter, loss) in (1..).zip(&losses) {
                job.sample.at = shift + 0.25 * number(quarter);
                job.sample.step += 1;
                job.sample.count += 1;
                job.sample.sum += loss;
                job.history.push(job.sample);
            }
            let progress = Progress { targets: objective(0.7), ..job.progress() };
            derive(&job.history, &progress, TRAINING)
        });
        prop_assert_eq!(one, other);
    }
}
