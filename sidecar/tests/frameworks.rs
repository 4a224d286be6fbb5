//! Reads real output of frameworks and compares it with the recorded truth. Every loss must be
//! found once, in order, with its phase, step and latency, and nothing else.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

mod support;

use std::iter::once;

use paceline_lines::observation::{Loss, Observation, Span};
use paceline_sidecar::merger::{Entry, Hints, Kind, Merger};

use support::truth::Row;
use support::{Fixture, Within, sources};

/// Allowed differences between a fixture's observations and its truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Allowed {
    Nothing,
    /// A latency may be missing if it includes the time of an evaluation, because it is then not
    /// that of a batch.
    NoLatencyWithEvaluation,
    /// Losses are sent later, with the step and the epoch of that time. The specification has no
    /// field for the span of a loss.
    SentOn,
    /// Keras's callback writes a validation loss by iterations and then, after the loss of the
    /// epoch, by epoch. Only the first is reported, so the order is compared per phase.
    ByIterations,
}

use Allowed::{ByIterations, NoLatencyWithEvaluation, Nothing, SentOn};

const FIXTURES: [(&str, Allowed); 22] = [
    ("flax_mnist", Nothing),
    // The last line has the time of the run over its steps.
    ("hf_merged", NoLatencyWithEvaluation),
    ("hf_plain", NoLatencyWithEvaluation),
    ("hf_status", SentOn),
    ("hf_stdout", NoLatencyWithEvaluation),
    ("keras_bar", Nothing),
    ("keras_csvlogger", Nothing),
    // A line has the time of the epoch over its batches.
    ("keras_lines", NoLatencyWithEvaluation),
    ("keras_tensorboard", ByIterations),
    ("lightgbm", Nothing),
    ("lightning_bar", Nothing),
    ("lightning_csv", Nothing),
    ("tensorboardx", Nothing),
    ("torch_imagenet", Nothing),
    ("torch_mnist", Nothing),
    ("torch_mnist_nan", Nothing),
    ("torch_tensorboard", Nothing),
    ("torch_vae", Nothing),
    ("torch_words", Nothing),
    ("tqdm_eager", Nothing),
    ("tqdm_lazy", Nothing),
    ("xgboost", Nothing),
];

/// Keras's name of a validation loss by iterations.
const BY_ITERATIONS: &str = "evaluation_loss_vs_iterations";

/// Allowed relative error of a latency.
const LATENCY: f64 = 0.05;

#[test]
fn every_fixture_is_in_the_table() {
    assert_eq!(support::names(), FIXTURES.map(|(name, _)| name));
}

#[test]
fn every_true_loss_is_found_and_nothing_else() {
    let mut faults = Vec::new();
    for (name, allowed) in FIXTURES {
        let fixture = Fixture::open(name);
        for (how, found) in readings(&fixture) {
            let compared = compare(&fixture, allowed, &found);
            faults.extend(compared.into_iter().map(|fault| format!("{name}, {how}: {fault}")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The observations of a fixture, for each way in which its bytes may arrive.
fn readings(fixture: &Fixture) -> Vec<(String, Vec<Observation>)> {
    let path = fixture.source();
    let whole = |found| vec![("whole".to_owned(), found)];
    match fixture.about.source.as_str() {
        "log" => {
            let sizes = [usize::MAX, 1, 997];
            let pieces = sizes.map(|size| (format!("by {size} bytes"), sources::log(&path, size)));
            let live = ("as it came".to_owned(), sources::log_as_it_came(fixture));
            pieces.into_iter().chain(once(live)).collect()
        }
        "csv" => whole(sources::rows(&path)),
        "tfevents" => whole(sources::events(&path)),
        "requests" => whole(sources::requests(&path)),
        other => panic!("unknown source {other}"),
    }
}

/// All differences between `found` and the truth.
fn compare(fixture: &Fixture, allowed: Allowed, found: &[Observation]) -> Vec<String> {
    let mut faults = Vec::new();
    let (truth, found) = in_order(fixture, allowed, found);
    let mut truth = truth.into_iter();
    for observation in found {
        let rows: Vec<_> = truth.by_ref().take(observation.losses.len()).collect();
        for (loss, row) in observation.losses.iter().zip(&rows) {
            faults.extend(loss_fault(loss, row, allowed, fixture.about.within[&row.phase]));
            faults.extend(place_fault(observation, row, allowed));
        }
        for loss in observation.losses.iter().skip(rows.len()) {
            faults.push(format!("{loss:?} is extra"));
        }
        faults.extend(latency_fault(observation, &rows, allowed));
    }
    faults.extend(truth.map(|row| format!("{row:?} is missing")));
    faults
}

/// The truth and the observations with losses, in the order of comparison.
fn in_order<'a>(
    fixture: &'a Fixture,
    allowed: Allowed,
    found: &'a [Observation],
) -> (Vec<&'a Row>, Vec<&'a Observation>) {
    let mut truth: Vec<_> = fixture.truth.iter().collect();
    let mut found: Vec<_> = found.iter().filter(|one| !one.losses.is_empty()).collect();
    if allowed == ByIterations {
        truth.sort_by_key(|row| row.phase());
        found.sort_by_key(|one| one.losses[0].phase);
    }
    (truth, found)
}

fn loss_fault(loss: &Loss, row: &Row, allowed: Allowed, within: Within) -> Option<String> {
    let other_name = allowed == ByIterations && loss.name == BY_ITERATIONS;
    let is_right = (loss.name == row.name || other_name)
        && loss.phase == row.phase()
        && (loss.span == row.span() || allowed == SentOn)
        && is_within(loss.value, row.loss.value(), within);
    (!is_right).then(|| format!("{loss:?} was read for {row:?}"))
}

/// Whether `value` equals `expected`, apart from rounding.
fn is_within(value: f64, expected: f64, within: Within) -> bool {
    if !expected.is_finite() {
        return value.total_cmp(&expected).is_eq() || (value.is_nan() && expected.is_nan());
    }
    // A float that is printed in full may differ by its precision.
    let allowed = within.absolute + (within.relative + f64::EPSILON) * expected.abs();
    (value - expected).abs() <= allowed
}

/// Checks the step, the total and the epoch, if the truth has them.
fn place_fault(observation: &Observation, row: &Row, allowed: Allowed) -> Option<String> {
    if allowed == SentOn {
        return None;
    }
    let step = match row.step {
        Some(step) => {
            observation.step == Some(step) && observation.step_in_samples == row.in_samples()
        }
        // The step of another line, such as a bar's, must be that of the run.
        None => {
            observation.step_in_epoch
                || observation.step.is_none_or(|step| row.global_step == Some(step))
        }
    };
    let of = row.of.is_none_or(|of| observation.total_steps == Some(of));
    // Fractions of an epoch are printed with few digits.
    let close = |epoch: f64| observation.epoch.is_some_and(|read| (read - epoch).abs() < 0.01);
    let by_iterations = allowed == ByIterations && observation.losses[0].name == BY_ITERATIONS;
    let epoch = by_iterations || row.epoch.is_none_or(close);
    (!(step && of && epoch)).then(|| format!("{observation:?} was read for {row:?}"))
}

/// Checks the latency of a line, which is reported once for all its losses.
fn latency_fault(observation: &Observation, rows: &[&Row], allowed: Allowed) -> Option<String> {
    let printed = rows.iter().find_map(|row| row.batch_seconds_printed);
    let is_right = match (observation.batch_seconds, printed) {
        (Some(read), Some(printed)) => {
            (read - printed).abs() <= (LATENCY * printed).max(half_a_unit(read))
        }
        (None, Some(_)) => allowed == NoLatencyWithEvaluation && has_evaluation(rows),
        (read, None) => read.is_none(),
    };
    (!is_right).then(|| format!("{:?} s were read for {printed:?} s", observation.batch_seconds))
}

/// Half a unit of the last digit of whole seconds or milliseconds.
fn half_a_unit(seconds: f64) -> f64 {
    if seconds.fract() == 0.0 { 0.5 } else { 0.0005 }
}

/// Whether the time of these rows includes an evaluation.
fn has_evaluation(rows: &[&Row]) -> bool {
    rows.iter().any(|row| row.phase != "train" || row.span() == Span::Run)
}

#[test]
fn unprinted_latency_is_inferred_from_arrival_times() {
    for (name, batch_size) in [("torch_mnist", 32), ("torch_vae", 32)] {
        let fixture = Fixture::open(name);
        let inferred = inferred(&fixture, batch_size);
        // The first line has no predecessor, and the second interval is the warm-up.
        let truth: Vec<_> =
            fixture.truth.iter().skip(2).filter_map(|row| row.batch_seconds).collect();
        let (measured, expected) = (mean(&inferred), mean(&truth));
        assert!(
            (measured / expected - 1.0).abs() <= LATENCY,
            "{name}: {measured} s from {inferred:?}, but {expected} s from {truth:?}"
        );
    }
}

/// The batch latencies that a merger reports for a log with its original arrival times.
fn inferred(fixture: &Fixture, batch_size: u64) -> Vec<f64> {
    let mut merger = Merger::new(Hints { batch_size: Some(batch_size), ..Hints::default() });
    let source = merger.add(Kind::Text);
    let mut reader = sources::reader();
    let mut batches = Vec::new();
    for arrival in sources::arrivals(fixture) {
        reader.feed(&arrival.bytes, &mut |one| {
            merger.take(source, one, arrival.at, |entry| {
                if let Entry::Batch(seconds) = entry {
                    batches.push(seconds);
                }
            });
        });
    }
    batches
}

fn mean(values: &[f64]) -> f64 {
    let count = u32::try_from(values.len()).unwrap();
    values.iter().sum::<f64>() / f64::from(count)
}
