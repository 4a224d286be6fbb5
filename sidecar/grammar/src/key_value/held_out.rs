//! Which losses of a line are those of held-out data, where their names do not say so.

use paceline_lines::names::{self, rank};
use paceline_lines::observation::{Loss, Phase, Span};

use super::vocabulary::{Role, role};
use crate::draft::Draft;
use crate::keys::main_loss_first;

/// Names of fields whose text says which data a line is about.
const DATA: [&str; 5] = ["mode", "split", "phase", "subset", "stage"];

/// The held-out data that a field such as `split=valid` names, anywhere in a line.
pub(super) fn data(line: &str) -> Option<Phase> {
    memchr::memchr2_iter(b'=', b':', line.as_bytes()).find_map(|at| {
        let (key, value) = line.split_at_checked(at)?;
        let key = key.trim_end_matches(['"', '\'']);
        if !key.ends_with(['e', 't']) {
            return None;
        }
        let name = DATA.iter().find(|name| key.ends_with(*name))?;
        let before = key.strip_suffix(name)?.chars().next_back();
        if before.is_some_and(|before| before.is_alphanumeric() || before == '_') {
            return None;
        }
        let value = value.get(1..)?.trim_start_matches([' ', '"', '\'']);
        let length = value.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(value.len());
        names::held_out_by(value.get(..length)?)
    })
}

/// Whether a line after a star has a score, too, as the results of the examples of PyTorch do. They
/// are those of held-out data: ` * Acc@1 75.0 loss 1.0`.
pub(super) fn is_summary(line: &str) -> bool {
    let scores = ["acc", "Acc", "ACC", "err", "Err", "mAP", "F1", "IoU"];
    scores.iter().any(|score| line.contains(score))
}

/// Whether a line has a score and the best one so far: `Loss: 0.5, MeanIU: 0.6, Best_mIoU: 0.7`.
pub(super) fn is_best(line: &str) -> bool {
    ["best", "Best", "BEST"].iter().any(|best| line.contains(best)) && is_summary(line)
}

/// Whether a line has the scores of a classifier that only held-out data have: `AUC: 0.75 - logloss: 0.5`.
pub(super) fn is_scored(line: &str, losses: &[Loss]) -> bool {
    let has = |name: &str| {
        line.split(|c: char| !c.is_alphanumeric()).any(|word| word.eq_ignore_ascii_case(name))
    };
    losses.iter().all(|loss| loss.name.eq_ignore_ascii_case("logloss"))
        && has("auc")
        && !has("train")
}

/// Whether a line has the results at the end of a run: `Final results: loss 0.5`, or without counters
/// `Results: loss 0.5`.
pub(super) fn is_final(line: &str, is_counted: bool) -> bool {
    if !line.starts_with(['F', 'f', 'R', 'r']) {
        return false;
    }
    let result = line.split_once(':').map(|(word, _)| word).filter(|_| !is_counted);
    if is_one_of(result, &["result", "results"]) {
        return true;
    }
    let mut words = line.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
    is_one_of(words.next(), &["final"]) && is_one_of(words.next(), &RESULTS)
}

fn is_one_of(word: Option<&str>, list: &[&str]) -> bool {
    word.is_some_and(|word| list.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

/// Words for the values of an evaluation.
const RESULTS: [&str; 6] = ["evaluation", "metrics", "performance", "result", "results", "scores"];

/// Beside a loss such as `tr_loss`, those of `te_loss`, `ts_loss`, `va_loss` and `ev_loss` are of held-out data.
/// Elsewhere these words may name parts, such as a text encoder.
pub(crate) fn abbreviated(losses: &mut [Loss]) {
    let first = |loss: &Loss, word: &str| {
        let name = loss.name.split(|c: char| !c.is_alphanumeric()).next();
        name.is_some_and(|name| name.eq_ignore_ascii_case(word))
    };
    if !losses.iter().any(|loss| first(loss, "tr")) {
        return;
    }
    for loss in losses {
        let phase = if first(loss, "te") || first(loss, "ts") {
            Phase::Test
        } else if first(loss, "va") || first(loss, "ev") {
            Phase::Validation
        } else {
            continue;
        };
        (loss.phase, loss.span) = (phase, Span::Epoch);
    }
}

/// Whether `name` has a word for the training.
pub(super) fn says_train(name: &str) -> bool {
    name.split([' ', '_', '/']).any(|word| role(word).any(Role::TRAIN))
}

/// In a line about the training, with its loss, "test" in the name of another loss may be that of a part: drops losses
/// of test data with further words, and those whose names have "train", too.
pub(super) fn drop_parts_named_after_data(draft: &mut Draft) {
    let has_main = |loss: &Loss| loss.phase == Phase::Train && rank(&loss.name) < 2;
    if !draft.found.losses.first().is_some_and(has_main) {
        return;
    }
    let has_train =
        |name: &str| name.as_bytes().windows(5).any(|word| word.eq_ignore_ascii_case(b"train"));
    let is_part = |loss: &Loss| {
        let has_further_words = loss.phase == Phase::Test && rank(&loss.name) >= 2;
        has_further_words || (loss.phase != Phase::Train && has_train(&loss.name))
    };
    draft.retain(|loss| !is_part(loss));
}

/// Parts of a loss on held-out data need not repeat that they are: `valid loss 0.5, box loss 0.1`.
pub(super) fn inherit(losses: &mut [Loss]) {
    let is_part = |loss: &Loss| {
        loss.phase == Phase::Train && rank(&loss.name) >= 2 && !says_train(&loss.name)
    };
    let held_out = losses.iter().find(|loss| loss.phase != Phase::Train).map(|loss| loss.phase);
    let trains = losses.iter().any(|loss| loss.phase == Phase::Train && !is_part(loss));
    if let Some(phase) = held_out.filter(|_| !trains) {
        for loss in losses.iter_mut().filter(|loss| is_part(loss)) {
            (loss.phase, loss.span) = (phase, Span::Epoch);
        }
        main_loss_first(losses);
    }
}
