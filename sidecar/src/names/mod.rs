//! The meaning of the name of a tag or a column: a loss on some data, the time of a batch, or a
//! counter.

mod words;

use crate::observation::{Phase, Span};
use words::{Kinds, Word, kinds, same, words};

/// The meaning of the numbers under a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Meaning {
    /// A loss. A property that the name does not give is `None`.
    Loss {
        /// The data.
        phase: Option<Phase>,
        /// The steps over which it is averaged.
        span: Option<Span>,
    },
    /// The time of a batch.
    BatchTime {
        /// Units per second: 1000 for milliseconds.
        per_second: f64,
    },
    /// Batches per second.
    BatchRate,
    /// The epoch.
    Epoch,
    /// The step since the start of training.
    Step,
    /// The batch since the start of the epoch.
    Batch,
    /// The planned number of steps.
    TotalSteps,
    /// The planned number of epochs.
    TotalEpochs,
    /// Unix seconds.
    WallTime,
}

/// The unit that the steps of a tag count.
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

/// The meaning of `name`; `None` if it is unknown.
pub fn meaning(name: &str) -> Option<Meaning> {
    let words = words(name);
    loss(name, &words)
        .or_else(|| batch(name, &words))
        .or_else(|| total(&words))
        .or_else(|| counter(&words))
}

/// The data that a folder or a name is about, if all of its words belong to it.
pub fn phase_of_folder(name: &str) -> Option<Phase> {
    let words = words(name);
    let of_data = Kinds::TRAIN | Kinds::HELD_OUT | Kinds::TEST | Kinds::LOSS;
    let only = words.iter().all(|word| word.kinds.any(of_data));
    if only { phase(kinds(&words)) } else { None }
}

/// The unit that the steps of a name count.
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

/// How far a loss is from the one that the training minimises: 0 for a loss without other words, 1
/// for a mean, 2 for a part such as `box_loss`, 3 for a part that only guides the others, 4 for other
/// names such as `cost`. Of several losses, that with the lowest rank is the main one.
pub fn rank(name: &str) -> u8 {
    let last = name.rsplit('/').next().unwrap_or_default();
    // The most frequent names.
    if ["loss", "train_loss", "total_loss"].iter().any(|main| last.eq_ignore_ascii_case(main)) {
        return 0;
    }
    let data = Kinds::LOSS | Kinds::TRAIN | Kinds::HELD_OUT | Kinds::TEST;
    let pure = data | Kinds::STEP | Kinds::EPOCH;
    let whole = pure | Kinds::RUNNING | Kinds::WHOLE;
    let words = words(name);
    let all = |kinds: Kinds| words.iter().all(|word| word.kinds.any(kinds) || word.is("total"));
    if !kinds(&words).any(Kinds::LOSS) {
        4
    } else if all(pure) {
        0
    } else if all(whole) {
        1
    } else {
        let guides =
            ["kl", "aux", "auxiliary", "reg", "regularization", "balancing", "balance", "z"];
        2 + u8::from(words.iter().any(|word| guides.iter().any(|name| word.is(name))))
    }
}

/// The held-out data that a short text such as `validation_epoch_end` speaks of, if it is the value
/// of a name such as `mode`. `None` for that of the training and for any other text.
pub fn held_out_by(text: &str) -> Option<Phase> {
    if text.len() > MAX_DATA_LEN {
        return None;
    }
    let words = words(text);
    let kinds = kinds(&words);
    let is_short = words.len() <= MAX_DATA_WORDS && !kinds.any(Kinds::TRAIN);
    phase(kinds).filter(|_| is_short)
}

/// Maximum length of a text that names data, in bytes and in words.
const MAX_DATA_LEN: usize = 40;
const MAX_DATA_WORDS: usize = 4;

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
    let all = kinds(words);
    let cross_entropy = |at: usize| {
        at.checked_sub(1).and_then(|at| words.get(at)).is_some_and(|word| word.is("cross"))
    };
    let denies = |(at, word): (usize, &Word<'_>)| {
        let is_other = (word.is("entropy") && cross_entropy(at)) || is_model(words, at);
        word.kinds.any(Kinds::NO_LOSS) && !is_other
    };
    let crossed =
        words.iter().enumerate().any(|(at, word)| word.is("entropy") && cross_entropy(at));
    let is_loss = all.any(Kinds::LOSS) || crossed || (all.any(Kinds::WEAK) && is_known(words, all));
    if !is_loss || words.iter().enumerate().any(denies) || is_setting(words) {
        return None;
    }
    let phase = phase(all);
    Some(Meaning::Loss { phase, span: span(name, words, phase) })
}

/// Whether the word at `at` is the name of the model: `clip_val_loss`.
fn is_model(words: &[Word<'_>], at: usize) -> bool {
    let data = Kinds::TRAIN | Kinds::HELD_OUT | Kinds::TEST;
    let before_data = words.get(at + 1).is_some_and(|next| next.kinds.any(data));
    at == 0 && before_data && words.first().is_some_and(|word| word.is("clip"))
}

/// Whether a name with "loss" is that of a setting: `loss_log_interval`, `kl_loss_epochs`. A mean
/// over many steps is none: `loss_last_100_steps`.
fn is_setting(words: &[Word<'_>]) -> bool {
    let is_extent = |word: &Word<'_>| {
        let named = ["last", "over", "past"].iter().any(|name| word.is(name));
        named || word.kinds.any(Kinds::PER) || word.text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let ends = words.last().is_some_and(|word| word.kinds.any(Kinds::SETTING));
    ends && words.len() > 1 && !words.iter().any(is_extent)
}

/// Whether another name of a loss has only words that leave it one. The cost of a batch is a time.
fn is_known(words: &[Word<'_>], all: Kinds) -> bool {
    let data = Kinds::WEAK | Kinds::TRAIN | Kinds::HELD_OUT | Kinds::TEST;
    let mean = Kinds::RUNNING | Kinds::EPOCH | Kinds::WHOLE;
    let step = if all.any(Kinds::COST) { Kinds::WEAK } else { Kinds::STEP };
    words.iter().all(|word| word.kinds.any(data | mean | step))
}

fn span(name: &str, words: &[Word<'_>], phase: Option<Phase>) -> Option<Span> {
    let kinds = kinds(words);
    let has = |word: &str| words.iter().any(|other| other.is(word));
    // The Hugging Face trainer puts everything except evaluations below `train/`. The mean of the
    // whole run, `train_loss`, therefore contains the word twice.
    if same(words, "train train loss") || has("final") {
        Some(Span::Run)
    } else if has("step") {
        Some(Span::Step)
    } else if kinds.any(Kinds::EPOCH) {
        Some(Span::Epoch)
    } else if name == "batch_loss" {
        // Keras passes the mean of the epoch so far to its callbacks at the end of a batch.
        Some(Span::EpochSoFar)
    } else if name == "train/loss" || kinds.any(Kinds::RUNNING) {
        Some(Span::Interval)
    } else if kinds.any(Kinds::STEP) {
        Some(Span::Step)
    } else {
        phase.filter(|phase| *phase != Phase::Train).map(|_| Span::Epoch)
    }
}

fn batch(name: &str, words: &[Word<'_>]) -> Option<Meaning> {
    // open_clip's name beside that of the data.
    if same(words, "batch t") {
        return Some(Meaning::BatchTime { per_second: 1.0 });
    }
    let all = kinds(words);
    if !all.any(Kinds::TIME | Kinds::SECOND | Kinds::MILLI | Kinds::COST) {
        // fairseq's name for updates per second.
        return same(words, "ups").then_some(Meaning::BatchRate);
    }
    // torchtitan's name for the time of a whole step.
    if same(words, "time metrics end to end s") {
        return Some(Meaning::BatchTime { per_second: 1.0 });
    }
    // The first is a counter; the others are the Hugging Face trainer's means of the whole run.
    let others = ["time step", "train steps per second", "train train steps per second"];
    if others.iter().any(|name| same(words, name)) {
        return None;
    }
    let ratio = ratio(name, words);
    let rate = matches!(ratio, Some(Ratio::Rate))
        || [Kinds::MANY_STEPS, Kinds::PER, Kinds::SECOND].iter().all(|kind| all.any(*kind));
    let time = Kinds::TIME | Kinds::SECOND | Kinds::MILLI | Kinds::MICRO | Kinds::COST;
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
    let timed = all.any(Kinds::STEP) && all.any(Kinds::TIME | Kinds::COST);
    (timed || ratio.is_some()).then_some(Meaning::BatchTime { per_second })
}

/// A time and a step, one of them per the other.
enum Ratio {
    /// Steps per second.
    Rate,
    /// Seconds per step.
    Time,
}

/// `iter/s`, `steps per second`, `sec/batch`.
fn ratio(name: &str, words: &[Word<'_>]) -> Option<Ratio> {
    let step = Kinds::STEP | Kinds::MANY_STEPS;
    let time = Kinds::SECOND | Kinds::MILLI | Kinds::MICRO;
    let mut rest = name;
    let mut before: Option<Word<'_>> = None;
    let mut per = false;
    for word in words {
        let (gap, after) = rest.split_at_checked(rest.find(word.text)?)?;
        rest = after.get(word.text.len()..)?;
        if word.kinds.any(Kinds::PER) {
            per = true;
            continue;
        }
        if let Some(before) = before.filter(|_| per || gap == "/") {
            if before.kinds.any(step) && word.kinds.any(Kinds::SECOND) {
                return Some(Ratio::Rate);
            }
            if before.kinds.any(time) && word.kinds.any(step) {
                return Some(Ratio::Time);
            }
        }
        (before, per) = (Some(*word), false);
    }
    None
}

/// Recognises totals only by exact names, so that a counter is not mistaken for one.
fn total(words: &[Word<'_>]) -> Option<Meaning> {
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

fn counter(words: &[Word<'_>]) -> Option<Meaning> {
    const EPOCHS: [&str; 6] = ["epoch", "ep", "pass", "epoch num", "epoch idx", "epoch number"];
    const STEPS: [&str; 28] = [
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
    } else {
        is(&["wall time", "walltime", "timestamp"]).then_some(Meaning::WallTime)
    }
}

/// Whether a counter of steps says that it counts those of the whole run.
pub fn is_global(name: &str) -> bool {
    let words = words(name);
    let has = |word: &str| words.iter().any(|other| other.is(word));
    has("global") || has("updates") || has("timesteps")
}

#[cfg(test)]
mod tests;
