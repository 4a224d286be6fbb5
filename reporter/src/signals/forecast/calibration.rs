//! Tests the quality of forecasts on recorded loss curves: see `tests/curves`.
//!
//! The method was tuned on the curves called `tuned` and on small models. Those called `checked`
//! were used for checks meanwhile. Those called `judged` were recorded afterwards, as a test set.
//! `--nocapture` shows every forecast.

use std::fs;
use std::path::Path;

use paceline_wire::{Forecast, Progress, Targets};

use super::fixtures::{classifier, least_squares, student};
use crate::signals::derive;
use crate::signals::samples::{Job, TRAINING};

/// The losses of a run, one of each step.
struct Curve {
    name: String,
    losses: Vec<f64>,
    /// Steps per second, about those of the machine that recorded it.
    rate: f64,
}

/// A forecast compared with the truth.
struct Verdict {
    holds: bool,
    /// The ratio of `high` to `low`.
    width: f64,
}

fn recorded(group: &str) -> Vec<Curve> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/curves");
    let mut curves: Vec<Curve> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter_map(|path| {
            let name = path.file_stem()?.to_str()?.strip_prefix(group)?.to_owned();
            let text = fs::read_to_string(&path).unwrap();
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            let losses = lines.map(|line| line.parse().unwrap()).collect();
            let rate = if name.contains("vae") { 100.0 } else { 14.0 };
            Some(Curve { name, losses, rate })
        })
        .collect();
    curves.sort_by(|a, b| a.name.cmp(&b.name));
    curves
}

/// The workload's default objective.
fn own_objective(curve: &Curve) -> Vec<f64> {
    let objective = match curve.name.trim_matches(|c: char| c == '-' || c.is_numeric()) {
        "vae-mnist" => 110.0,
        "vae-fashion" => 245.0,
        "mnist-mnist" => 0.25,
        "mnist-fashion" => 0.4,
        _ => panic!("{}", curve.name),
    };
    vec![objective]
}

/// Levels that the curve reaches during the run.
fn other_objectives(curve: &Curve) -> Vec<f64> {
    let means: Vec<f64> = curve.losses.windows(25).map(mean).collect();
    [30, 50, 70, 90].map(|percent| means[means.len() * percent / 100]).to_vec()
}

fn mean(losses: &[f64]) -> f64 {
    losses.iter().sum::<f64>() / f64::from(u32::try_from(losses.len()).unwrap())
}

/// Forecasts when the mean of five losses reaches the objective, after `percent` of the time until
/// then. `None` if the run never reaches it, or if no forecast is made.
fn ask(curve: &Curve, objective: f64, percent: usize) -> Option<Verdict> {
    let Curve { name, losses, rate } = curve;
    let steps = losses.windows(5).position(|five| mean(five) <= objective)? + 5;
    let asked = steps * percent / 100;
    let job = Job::with_losses(&losses[..asked], *rate);
    let targets = Targets { objective: Some(objective), ..Targets::default() };
    let progress = Progress { targets, ..job.progress() };
    let forecast = derive(&job.history, &progress, TRAINING).to_objective?;
    let Forecast { low, seconds, high, .. } = forecast;
    let came = f64::from(u32::try_from(steps - asked).unwrap()) / rate;
    let holds = low.is_some_and(|low| low <= came) && high.is_none_or(|high| came <= high);
    let shown =
        |value: Option<f64>| value.map_or("never".to_owned(), |value| format!("{value:.1}"));
    println!(
        "{name:20} to {objective:7.4}: after {:6.1} s {:>6} {:>6} {:>6}, came {came:6.1}{}",
        f64::from(u32::try_from(asked).unwrap()) / rate,
        shown(low),
        shown(seconds),
        shown(high),
        if holds { "" } else { " MISSED" },
    );
    let width = low.zip(high).map_or(f64::INFINITY, |(low, high)| high / low);
    Some(Verdict { holds, width })
}

/// The share of correct intervals, of at least `fewest`, and their median width.
fn judge(
    curves: &[Curve],
    objectives: impl Fn(&Curve) -> Vec<f64>,
    percent: usize,
    fewest: usize,
) -> (f64, f64) {
    let verdicts: Vec<Verdict> = curves
        .iter()
        .flat_map(|curve| objectives(curve).into_iter().map(move |objective| (curve, objective)))
        .filter_map(|(curve, objective)| ask(curve, objective, percent))
        .collect();
    assert!(verdicts.len() >= fewest, "{} forecasts", verdicts.len());
    let hold: Vec<f64> =
        verdicts.iter().map(|verdict| if verdict.holds { 1.0 } else { 0.0 }).collect();
    let mut widths: Vec<f64> = verdicts.iter().map(|verdict| verdict.width).collect();
    widths.sort_by(f64::total_cmp);
    let (hold, width) = (mean(&hold), widths[widths.len() / 2]);
    println!("{percent} %: {hold:.2} of {} hold, high/low {width:.1}\n", verdicts.len());
    (hold, width)
}

#[test]
fn the_interval_at_half_of_the_time_holds_the_truth() {
    for group in ["judged-", "checked-"] {
        let (hold, _) = judge(&recorded(group), own_objective, 50, 10);
        assert!(hold >= 0.7, "{group}: {hold}");
    }
    judge(&recorded("tuned-"), own_objective, 50, 10);
}

#[test]
fn the_intervals_at_other_times_hold_the_truth() {
    for group in ["judged-", "checked-"] {
        for percent in [25, 75] {
            let (hold, _) = judge(&recorded(group), own_objective, percent, 8);
            assert!(hold >= 0.6, "{group} {percent}: {hold}");
        }
    }
}

#[test]
fn intervals_for_other_objectives_are_right_and_narrow() {
    for group in ["judged-", "checked-", "tuned-"] {
        let (hold, width) = judge(&recorded(group), other_objectives, 50, 30);
        assert!(hold >= 0.75 && width <= 15.0, "{group}: {hold} {width}");
    }
}

#[test]
fn the_intervals_for_other_models_hold_the_truth() {
    let curves: Vec<Curve> = (0..3)
        .zip([0.0, 0.5, 0.9])
        .flat_map(|(at, momentum)| {
            let (seed, kind) = (101 + at, f64::from(u32::try_from(at).unwrap()));
            [
                ("squares", least_squares(seed, 1000, 0.5 + 0.3 * kind, 0.02)),
                ("classes", classifier(seed, 1000, 0.3 + 0.15 * kind, 0.05)),
                ("student", student(seed, 1000, momentum, 0.02)),
            ]
        })
        .map(|(name, losses)| Curve { name: name.to_owned(), losses, rate: 14.0 })
        .collect();
    let (hold, _) = judge(&curves, other_objectives, 50, 30);
    assert!(hold >= 0.6, "{hold}");
}
