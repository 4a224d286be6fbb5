//! What the name of a tag or a column says: a loss and on which data, the time of a batch, or how
//! far the job is.

mod words;

use crate::observation::{Phase, Span};
use words::{Kinds, Word, kinds, same, words};

/// What the numbers under a name are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Meaning {
    /// A loss. What the name leaves open is `None`.
    Loss {
        /// The data.
        phase: Option<Phase>,
        /// What it is the mean of.
        span: Option<Span>,
    },
    /// How long a batch takes.
    BatchTime {
        /// How many of its units are a second: 1000 for milliseconds.
        per_second: f64,
    },
    /// How many batches are done in a second.
    BatchRate,
    /// The epoch.
    Epoch,
    /// The step since the start of training.
    Step,
    /// The batch since the start of the epoch.
    Batch,
    /// How many steps there are to be.
    TotalSteps,
    /// How many epochs there are to be.
    TotalEpochs,
    /// Unix seconds.
    WallTime,
}

/// What the steps of a tag count.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub enum Axis {
    /// Steps of training.
    Steps,
    /// Epochs, as with Keras's `epoch_loss`.
    Epochs,
    /// Samples, as with `Train/Samples/train_loss`.
    Samples,
}

/// What `name` says; `None` if it is about something else.
pub fn meaning(name: &str) -> Option<Meaning> {
    let words = words(name);
    loss(name, &words)
        .or_else(|| batch(&words))
        .or_else(|| total(&words))
        .or_else(|| counter(&words))
}

/// The data that a folder or a name is about, if all of it says so.
pub fn phase_of_folder(name: &str) -> Option<Phase> {
    let words = words(name);
    let of_data = Kinds::TRAIN | Kinds::HELD_OUT | Kinds::TEST | Kinds::LOSS;
    let only = words.iter().all(|word| word.kinds.any(of_data));
    if only { phase(kinds(&words)) } else { None }
}

/// What the steps that go with a name count.
pub fn axis(name: &str) -> Axis {
    let words = words(name);
    if words.len() > 1 && words.first().is_some_and(|word| word.is("epoch")) {
        Axis::Epochs
    } else if words.iter().any(|word| word.is("samples")) {
        Axis::Samples
    } else {
        Axis::Steps
    }
}

fn phase(kinds: Kinds) -> Option<Phase> {
    if kinds.any(Kinds::TEST) {
        Some(Phase::Test)
    } else if kinds.any(Kinds::HELD_OUT) {
        Some(Phase::Validation)
    } else {
        kinds.any(Kinds::TRAIN).then_some(Phase::Train)
    }
}

fn loss(name: &str, words: &[Word<'_>]) -> Option<Meaning> {
    // Keras writes a loss against iterations. Against samples it is a second copy of another tag.
    let mut words = words;
    if let Some(at) = words.iter().position(|word| word.is("vs")) {
        let (before, after) = words.split_at_checked(at)?;
        if !kinds(after).any(Kinds::STEP | Kinds::MANY_STEPS) {
            return None;
        }
        words = before;
    }
    let kinds = kinds(words);
    if !kinds.any(Kinds::LOSS) || kinds.any(Kinds::NO_LOSS) {
        return None;
    }
    let phase = phase(kinds);
    Some(Meaning::Loss { phase, span: span(name, words, phase) })
}

fn span(name: &str, words: &[Word<'_>], phase: Option<Phase>) -> Option<Span> {
    let kinds = kinds(words);
    let has = |word: &str| words.iter().any(|other| other.is(word));
    // The Hugging Face trainer puts all that is not of an evaluation below `train/`, so that the
    // mean of the whole run, `train_loss`, has the word twice.
    if same(words, "train train loss") || has("final") {
        Some(Span::Run)
    } else if has("step") {
        Some(Span::Step)
    } else if kinds.any(Kinds::EPOCH) {
        Some(Span::Epoch)
    } else if name == "batch_loss" {
        // Keras: what its callbacks are given at the end of a batch is the mean so far.
        Some(Span::EpochSoFar)
    } else if name == "train/loss" || kinds.any(Kinds::RUNNING) {
        Some(Span::Interval)
    } else if kinds.any(Kinds::STEP) {
        Some(Span::Step)
    } else {
        phase.filter(|phase| *phase != Phase::Train).map(|_| Span::Epoch)
    }
}

fn batch(words: &[Word<'_>]) -> Option<Meaning> {
    let all = kinds(words);
    if !all.any(Kinds::TIME | Kinds::SECOND) {
        return None;
    }
    // How torchtitan names the time of a whole step.
    if same(words, "time metrics end to end s") {
        return Some(Meaning::BatchTime { per_second: 1.0 });
    }
    // The first is a counter; the others are the Hugging Face trainer's means of the whole run.
    let others = ["time step", "train steps per second", "train train steps per second"];
    if others.iter().any(|name| same(words, name)) {
        return None;
    }
    let rate = [Kinds::MANY_STEPS, Kinds::PER, Kinds::SECOND].iter().all(|kind| all.any(*kind));
    let time = Kinds::TIME | Kinds::SECOND | Kinds::MILLI | Kinds::MICRO;
    let mut known = time | Kinds::TRAIN | Kinds::STEP | Kinds::MANY_STEPS | Kinds::PER;
    known = known | Kinds::BESIDE;
    if rate {
        known = known | Kinds::EPOCH;
    }
    if !words.iter().all(|word| word.kinds.any(known)) {
        return None;
    }
    if rate {
        return Some(Meaning::BatchRate);
    }
    let per_second = if all.any(Kinds::MILLI) {
        1e3
    } else if all.any(Kinds::MICRO) {
        1e6
    } else {
        1.0
    };
    let timed = all.any(Kinds::STEP) && all.any(Kinds::TIME);
    timed.then_some(Meaning::BatchTime { per_second })
}

/// A total is named as one, so that it is not taken for what has been done.
fn total(words: &[Word<'_>]) -> Option<Meaning> {
    const STEPS: [&str; 12] = [
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
    const EPOCHS: [&str; 7] = [
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

fn counter(words: &[Word<'_>]) -> Option<Meaning> {
    let of_trainer = |word: &Word<'_>| {
        word.kinds.any(Kinds::TRAIN) || ["trainer", "global", "current"].iter().any(|w| word.is(w))
    };
    let words = words.get(words.iter().position(|word| !of_trainer(word))?..)?;
    let is = |names: &[&str]| names.iter().any(|name| same(words, name));
    if is(&["epoch"]) {
        Some(Meaning::Epoch)
    } else if is(&["step", "steps", "iteration", "iterations", "iter"]) {
        Some(Meaning::Step)
    } else if is(&["batch", "batch idx", "batch index"]) {
        Some(Meaning::Batch)
    } else {
        is(&["wall time", "walltime", "timestamp"]).then_some(Meaning::WallTime)
    }
}

#[cfg(test)]
mod tests;
