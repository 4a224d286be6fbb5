//! Names of losses: of which data, and over which steps.

use super::words::{Kinds, Word, kinds, same};
use super::{Meaning, phase};
use crate::observation::{Phase, Span};

pub(super) fn loss(name: &str, words: &[Word<'_>]) -> Option<Meaning> {
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
        let is_other = (word.is("entropy") && cross_entropy(at))
            || is_model(words, at)
            || is_part(words, at)
            || (word.is("function") && follows_value(words, at));
        word.kinds.any(Kinds::NO_LOSS) && !is_other
    };
    let crossed =
        words.iter().enumerate().any(|(at, word)| word.is("entropy") && cross_entropy(at));
    let is_loss = all.any(Kinds::LOSS) || crossed || (all.any(Kinds::WEAK) && is_known(words, all));
    if !is_loss || words.iter().enumerate().any(denies) || is_setting(words) || is_measure(name) {
        return None;
    }
    let phase = phase(all);
    Some(Meaning::Loss { phase, span: span(name, words, phase) })
}

/// Whether the word at `at` is that of a value function, which has a loss of its own.
fn follows_value(words: &[Word<'_>], at: usize) -> bool {
    at.checked_sub(1).and_then(|at| words.get(at)).is_some_and(|word| word.is("value"))
}

/// Whether the word at `at` names a part, directly before the last word: `mask_loss`. Before or behind other
/// words it makes the name that of a setting.
fn is_part(words: &[Word<'_>], at: usize) -> bool {
    let is_last =
        words.get(at + 1).is_some_and(|next| next.kinds.any(Kinds::LOSS)) && at + 2 == words.len();
    let names = ["gradient", "margin", "mask", "variance"];
    is_last && words.get(at).is_some_and(|word| names.iter().any(|name| word.is(name)))
}

/// Whether a name is that of a measure which a program lists among its losses: `loss/approxkl`.
fn is_measure(name: &str) -> bool {
    let Some((_, last)) = name.rsplit_once('/') else { return false };
    MEASURES.iter().any(|measure| same(&super::words(last), measure))
}

/// Measures of a training by trial and error, most of them on a policy.
const MEASURES: [&str; 14] = [
    "approx kl",
    "approxkl",
    "clip frac",
    "clip fraction",
    "clipfrac",
    "explained variance",
    "fps",
    "grad norm",
    "learning rate",
    "old approx kl",
    "return",
    "reward",
    "steps per second",
    "sps",
];

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
