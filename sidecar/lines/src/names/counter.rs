//! Names of counters: steps, batches, epochs, and how many are planned.

use super::Meaning;
use super::words::{Kinds, Word, same};

/// Recognises totals only by exact names, so that a counter is not mistaken for one.
pub(super) fn total(words: &[Word<'_>]) -> Option<Meaning> {
    const STEPS: [&str; 14] = [
        "max update",
        "max updates",
        "total steps",
        "max steps",
        "num steps",
        "steps total",
        "total iters",
        "max iters",
        "max iterations",
        "total optimization steps",
        "num train steps",
        "num training steps",
        "max train steps",
        "total training steps",
    ];
    const EPOCHS: [&str; 8] = [
        "max epoch",
        "total epochs",
        "max epochs",
        "num epochs",
        "n epochs",
        "nb epochs",
        "num train epochs",
        "number of epochs",
    ];
    let is = |names: &[&str]| names.iter().any(|name| same(words, name));
    if is(&STEPS) { Some(Meaning::TotalSteps) } else { is(&EPOCHS).then_some(Meaning::TotalEpochs) }
}

/// Words after the name of a counter: what it counts is done.
const DONE: [&str; 4] = ["seen", "done", "completed", "processed"];

/// `batches_seen`, `epochs done`: a counter of the run.
fn done(words: &[Word<'_>]) -> Option<Meaning> {
    const EPOCHS: [&str; 2] = ["epoch", "epochs"];
    const STEPS: [&str; 9] = [
        "step",
        "steps",
        "iteration",
        "iterations",
        "iters",
        "batch",
        "batches",
        "minibatches",
        "updates",
    ];
    let [word, last] = words else { return None };
    let is = |names: &[&str]| names.iter().any(|name| word.is(name));
    if !DONE.iter().any(|done| last.is(done)) {
        None
    } else if is(&EPOCHS) {
        Some(Meaning::Epoch)
    } else {
        is(&STEPS).then_some(Meaning::Step)
    }
}

pub(super) fn counter(words: &[Word<'_>]) -> Option<Meaning> {
    const EPOCHS: [&str; 8] =
        ["epoch", "ep", "epch", "pass", "epoch num", "epoch idx", "epoch number", "data epochs"];
    const STEPS: [&str; 33] = [
        "round",
        "step",
        "steps",
        "iteration",
        "iterations",
        "iter",
        "iters",
        "ite",
        "it",
        "update",
        "updates",
        "num updates",
        "n updates",
        "nupdates",
        "niter",
        "n iter",
        "iter num",
        "iter no",
        "iteration number",
        "step num",
        "step idx",
        "step count",
        "update step",
        "optimizer step",
        "optim step",
        "opt step",
        "steps completed",
        "completed steps",
        "steps done",
        "total timesteps",
        "total train updates",
        "acc iter",
        "accumulated iter",
    ];
    const BATCHES: [&str; 8] = [
        "batch",
        "batch idx",
        "batch index",
        "batch num",
        "batch no",
        "minibatch",
        "mini batch",
        "batches",
    ];
    let of_trainer = |word: &Word<'_>| {
        word.kinds.any(Kinds::TRAIN)
            || ["trainer", "global", "current", "cur"].iter().any(|w| word.is(w))
    };
    let start = words.iter().position(|word| !of_trainer(word))?;
    let (of_run, words) = words.split_at_checked(start)?;
    let is = |names: &[&str]| names.iter().any(|name| same(words, name));
    if is(&EPOCHS) {
        Some(Meaning::Epoch)
    } else if is(&STEPS) || (of_run.iter().any(|word| word.is("global")) && is(&BATCHES)) {
        Some(Meaning::Step)
    } else if is(&BATCHES) {
        Some(Meaning::Batch)
    } else if let [_, _] = words {
        done(words).or_else(|| is(&["wall time"]).then_some(Meaning::WallTime))
    } else {
        is(&["walltime", "timestamp"]).then_some(Meaning::WallTime)
    }
}
