//! Tables of lines and what they say, in words.

use super::Detector;
use crate::observation::{Observation, Phase};
use crate::terminal::End;

/// What an observation holds, such as `epoch 1/2, batch 3/8, 0.25 s, loss=0.5 Train Step`.
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

/// Reads each line after those before it, and by itself where `alone`.
pub(super) fn check(name: &str, alone: bool, table: &[(&str, &str)]) {
    let mut detector = Detector::default();
    for (line, expected) in table {
        let found = detector.read(line, End::Newline);
        assert_eq!(found.map_or(String::new(), words), *expected, "{line}");
        if alone {
            let mut fresh = Detector::default();
            let found = fresh.read(line, End::Newline);
            assert_eq!(found.map_or(String::new(), words), *expected, "alone: {line}");
            let losses = found.is_some_and(|found| !found.losses.is_empty());
            let expected = losses.then_some((name, 1.0));
            let matched = fresh.matched().map(|found| (found.name, found.confidence));
            assert_eq!(matched, expected, "alone: {line}");
        }
    }
    assert_eq!(detector.matched().map(|found| found.name), Some(name));
}

/// What each frame or line says, without those that say nothing.
pub(super) fn told(lines: &[(&str, End)]) -> Vec<String> {
    let mut detector = Detector::default();
    let read = lines.iter().filter_map(|(line, end)| detector.read(line, *end).map(words));
    let mut told: Vec<String> = read.collect();
    told.extend(detector.flush().map(|found| words(&found)));
    told
}
