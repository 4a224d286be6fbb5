//! Checks tables of lines against short texts of their observations.

use paceline_lines::observation::{Loss, Observation, Phase, Span};
use paceline_lines::terminal::End;

use super::Detector;

/// A short text of an observation, such as `epoch 1/2, batch 3/8, 0.25 s, loss=0.5 Step`.
pub(super) fn words(found: &Observation) -> String {
    let of = |total: Option<u64>| total.map_or(String::new(), |total| format!("/{total}"));
    let mut words = Vec::new();
    if let Some(epoch) = found.epoch {
        words.push(format!("epoch {epoch}{}", of(found.total_epochs)));
    }
    if let Some(step) = found.step {
        let unit = match (found.step_in_samples, found.step_in_epoch) {
            (true, _) => "sample",
            (_, true) => "batch",
            _ => "step",
        };
        words.push(format!("{unit} {step}{}", of(found.total_steps)));
    }
    if found.epoch.is_none() {
        words.extend(found.total_epochs.map(|epochs| format!("{epochs} epochs")));
    }
    if found.step.is_none() {
        words.extend(found.total_steps.map(|steps| format!("{steps} steps")));
    }
    words.extend(found.batch_seconds.map(|seconds| format!("{seconds} s")));
    words.extend(found.rank.map(|rank| format!("rank {rank}")));
    words.extend(found.at.map(|at| format!("at {at}")));
    for loss in &found.losses {
        let phase = if loss.phase == Phase::Train { "" } else { &format!(" {:?}", loss.phase) };
        words.push(format!("{}={}{phase} {:?}", loss.name, loss.value, loss.span));
    }
    words.join(", ")
}

/// Reads the lines in order, and with `alone` also each line by itself.
pub(super) fn check(name: &str, alone: bool, table: &[(&str, &str)]) {
    let mut detector = Detector::default();
    for (line, expected) in table {
        let found = detector.read(line, End::Newline);
        assert_eq!(found.map_or(String::new(), words), *expected, "{line}");
        if alone {
            let mut fresh = Detector::default();
            // A part of a loss waits for its main loss until the source is quiet.
            let found = fresh.read(line, End::Newline).cloned().or_else(|| fresh.flush());
            let read = found.as_ref().map_or(String::new(), words);
            assert_eq!(read, *expected, "alone: {line}");
            let losses = found.is_some_and(|found| !found.losses.is_empty());
            let expected = losses.then_some((name, 1.0));
            let matched = fresh.matched().map(|found| (found.name, found.confidence));
            assert_eq!(matched, expected, "alone: {line}");
        }
    }
    assert_eq!(detector.matched().map(|found| found.name), Some(name));
}

/// The observations of all frames and lines as short texts.
pub(super) fn read_all(lines: &[(&str, End)]) -> Vec<String> {
    let mut detector = Detector::default();
    let mut all = Vec::new();
    for (line, end) in lines {
        all.extend(detector.read(line, *end).map(words));
        all.extend(detector.further().map(|found| words(&found)));
    }
    all.extend(detector.flush().map(|found| words(&found)));
    all
}

/// A line with one training loss.
pub(crate) fn line(step: u64, name: &str) -> Observation {
    let loss = Loss { name: name.to_owned(), phase: Phase::Train, span: Span::Step, value: 0.5 };
    Observation { step: Some(step), losses: vec![loss], ..Observation::default() }
}
