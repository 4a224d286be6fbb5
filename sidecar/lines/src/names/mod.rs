//! The meaning of the name of a tag or a column: a loss on some data, the time of a batch, or a
//! counter.

mod batch;
mod counter;
mod loss;
mod words;

use crate::observation::{Phase, Span};
use batch::batch;
use counter::{counter, total};
use loss::loss;
use words::{Kinds, Word, kinds, words};

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
    /// Seconds since the start of training.
    Elapsed,
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

/// Whether unknown words follow that for a loss: `loss_queue_slots`. A whole number under such a name is
/// a setting.
pub fn is_longer(name: &str) -> bool {
    let words = words(name);
    let last = words.iter().rposition(|word| word.kinds.any(Kinds::LOSS));
    let after = last.and_then(|last| words.get(last + 1..)).unwrap_or_default();
    after.iter().any(|word| word.kinds == Kinds::default() && word.text.len() > 1)
}

/// Words before "loss" that make it something else than a loss of a training.
pub const OTHER_LOSSES: [&str; 24] = [
    "data",
    "hair",
    "hearing",
    "heat",
    "information",
    "insertion",
    "insulation",
    "job",
    "memory",
    "message",
    "no",
    "packet",
    "packets",
    "path",
    "power",
    "precision",
    "profit",
    "return",
    "signal",
    "stop",
    "take",
    "to",
    "water",
    "weight",
];

/// The rank from which a loss is only a part.
pub const PART: u8 = 2;

/// How far a loss is from the one that the training minimises: 0 for a loss without other words, 1
/// for a mean, 2 for a part such as `box_loss`, 3 for a part that only guides the others, 4 for other
/// names such as `cost`, 5 for parts of a cost. Of several losses, that with the lowest rank is the main one.
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
    let words = without_unit(&words);
    let all = |kinds: Kinds| words.iter().all(|word| word.kinds.any(kinds) || word.is("total"));
    if kinds(words).any(Kinds::GLUED) {
        return 2;
    }
    if !kinds(words).any(Kinds::LOSS) {
        // A cost is often that of something else. One with further words is a part of the others.
        if is_part_of_cost(words) { 5 } else { 4 }
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

/// The words of a loss without those for what it is a mean of: `Loss/tok`, `loss per token`. Before "loss", such a
/// word names a part.
fn without_unit<'w, 'a>(words: &'w [Word<'a>]) -> &'w [Word<'a>] {
    const UNITS: [&str; 5] = ["tok", "token", "word", "char", "character"];
    let is_unit = |word: &Word<'_>| UNITS.iter().any(|unit| word.is(unit));
    let rest = match words {
        [rest @ .., per, unit] if per.kinds.any(Kinds::PER) && is_unit(unit) => rest,
        [rest @ .., unit] if is_unit(unit) => rest,
        _ => return words,
    };
    let is_behind_loss = rest.last().is_some_and(|word| word.kinds.any(Kinds::LOSS));
    if is_behind_loss { rest } else { words }
}

/// Whether a cost is said to be the whole: `total_cost`. Beside parts of a loss it is the main one.
pub fn is_whole_cost(name: &str) -> bool {
    // Most names are those of losses.
    if !["cost", "Cost", "COST"].iter().any(|cost| name.contains(cost)) {
        return false;
    }
    let words = words(name);
    let is_total = |word: &Word<'_>| ["total", "tot", "overall"].iter().any(|all| word.is(all));
    kinds(&words).any(Kinds::COST) && words.iter().any(is_total) && !is_part_of_cost(&words)
}

/// Whether the words are those of `box_cost`.
fn is_part_of_cost(words: &[Word<'_>]) -> bool {
    let data = Kinds::COST | Kinds::TRAIN | Kinds::HELD_OUT | Kinds::TEST;
    let mean = Kinds::STEP | Kinds::EPOCH | Kinds::RUNNING | Kinds::WHOLE;
    words.iter().any(|word| word.kinds.any(Kinds::COST))
        && !words.iter().all(|word| word.kinds.any(data | mean))
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

/// Whether the name of a counter of steps means those of the whole run.
pub fn is_global(name: &str) -> bool {
    let words = words(name);
    let has = |word: &str| words.iter().any(|other| other.is(word));
    ["global", "updates", "timesteps", "acc", "accumulated"].iter().any(|word| has(word))
}

#[cfg(test)]
mod tests;
