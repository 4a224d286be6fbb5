//! Numbers of runs and of checkpoints.

use super::known_words::is_one;
use super::pair::{Form, Pair};
use super::vocabulary::{Role, role};

/// Whether a number is that of a checkpoint, which is then a counter: `Checkpoint [2]`.
pub(super) fn counts_checkpoints(pair: &Pair<'_>) -> bool {
    let [before @ .., last] = pair.words.as_slice() else { return false };
    let repeats = before.iter().any(|word| role(word).any(Role::REPEATS));
    is_one(last, &["checkpoint"])
        && !repeats
        && pair.form == Form::Digits
        && pair.after.starts_with(']')
}

/// Whether a line numbers a run: `Training fold 2`.
pub(super) fn names_run(text: &str) -> bool {
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut of_run = false;
    for word in words {
        if of_run && is_number(word) {
            return true;
        }
        of_run = RUNS.iter().any(|name| word.eq_ignore_ascii_case(name));
    }
    false
}

/// Words for runs of which a program does several. A saved model may have the number of its epoch.
const RUNS: [&str; 8] =
    ["client", "experiment", "fold", "repetition", "run", "seed", "split", "trial"];

/// Whether a number is that of a state with which a training goes on: `Starting epoch from 5, loss = 0.5`.
pub(super) fn starts_from(pair: &Pair<'_>) -> bool {
    match pair.words.as_slice() {
        [first, .., last] => {
            last.eq_ignore_ascii_case("from")
                && is_one(first, &["start", "started", "starting", "continue", "continuing"])
        }
        _ => false,
    }
}
