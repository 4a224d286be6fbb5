//! Lines without a number that say what the lines below are about: `Validating`, `Test Error:`,
//! `***** train metrics *****`.

use paceline_lines::scan;

/// What the lines below a heading are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    /// The training.
    Train,
    /// An evaluation on held-out data.
    HeldOut,
    /// A summary of the run, which repeats earlier values.
    Summary,
}

/// Maximum length of such a line in bytes.
const MAX_LEN: usize = 60;
/// Maximum number of marks before the first word of such a line with a number.
const MAX_FRAME: usize = 16;
/// Words of an evaluation, of the training and of a summary.
const HELD_OUT: [&str; 15] = [
    "validation",
    "validating",
    "validate",
    "valid",
    "val",
    "evaluation",
    "evaluating",
    "evaluate",
    "eval",
    "test",
    "testing",
    "dev",
    "held-out",
    "heldout",
    "holdout",
];
const TRAIN: [&str; 3] = ["training", "train", "trainer"];
const SUMMARY: [&str; 5] = ["metrics", "summary", "history", "hyperparameters", "best"];
/// Words of counters, which may have a number.
const COUNTERS: [&str; 5] = ["epoch", "step", "iteration", "iter", "batch"];
/// Words that may accompany them.
const OTHERS: [&str; 33] = [
    "calculating",
    "calculation",
    "calculations",
    "run",
    "running",
    "start",
    "starting",
    "started",
    "begin",
    "beginning",
    "computing",
    "loss",
    "on",
    "the",
    "set",
    "model",
    "error",
    "errors",
    "performance",
    "phase",
    "results",
    "result",
    "for",
    "of",
    "at",
    "after",
    "in",
    "mode",
    "net",
    "now",
    "stage",
    "final",
    "cross",
];
/// Words of results. They may accompany the others between marks, as in `*** Evaluating perplexity ***`. Elsewhere
/// the line has the result itself, or the values of groups follow it.
const METRICS: [&str; 4] = ["accuracy", "perplexity", "score", "scores"];
/// Words of a report on some data, which are not those of a list of data between marks: `** Reported on test data **`.
const REPORTED: [&str; 2] = ["reported", "reporting"];
/// Counters behind their number: `** Evaluation after 500 batches **`.
const PLURALS: [&str; 5] = ["epochs", "steps", "iterations", "iters", "batches"];
/// Marks around a heading.
const MARKS: [char; 4] = ['*', '=', '#', '-'];

impl Section {
    /// Whether a line with a number may open a section, by its first letters.
    #[inline]
    pub(super) fn may_be_numbered(line: &str) -> bool {
        let bytes = line.as_bytes();
        let Some(start) = bytes.iter().take(MAX_FRAME).position(u8::is_ascii_alphabetic) else {
            return false;
        };
        let [first, second, ..] = bytes.get(start..).unwrap_or_default() else { return false };
        // Those of evaluations, of the training, of `best`, `running`, `computing`, `results`, `epoch` and `starting`.
        matches!(
            &[first | 0x20, second | 0x20],
            b"va" | b"ev" | b"te" | b"tr" | b"de" | b"be" | b"ru" | b"co" | b"re" | b"ep" | b"st"
        )
    }

    /// The section that `line` opens.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let is_framed = line.starts_with(MARKS) && line.ends_with(MARKS);
        // A row between bars names a group of values.
        if line.len() > MAX_LEN || (!is_framed && line.bytes().any(|byte| byte == b'|')) {
            return None;
        }
        let (mut found, mut summary, mut counts) = (None, false, false);
        let (mut trains, mut metric, mut reports) = (false, false, false);
        let words = line.split(|c: char| !c.is_alphabetic() && c != '-');
        for word in words.map(|word| word.trim_matches('-')).filter(|word| !word.is_empty()) {
            let is = |list: &[&str]| list.iter().any(|known| word.eq_ignore_ascii_case(known));
            if is(&HELD_OUT) {
                found = Some(Self::HeldOut);
            } else if is(&TRAIN) {
                found = found.or(Some(Self::Train));
                trains = true;
            } else if is(&SUMMARY) {
                summary = true;
            } else if is(&COUNTERS) {
                counts = true;
            } else if is(&METRICS) {
                metric = true;
            } else if is_framed && is(&REPORTED) {
                reports = true;
            } else if is_framed && is(&PLURALS) && follows_number(line, word) {
                counts = true;
            } else if !(is(&OTHERS) || (reports && word.eq_ignore_ascii_case("data"))) {
                return None;
            }
        }
        // `Train/Val` is about both.
        let of_both =
            trains && found == Some(Self::HeldOut) && (has_two_names(line) || line.contains('|'));
        if of_both || (metric && !is_framed) {
            return None;
        }
        if line.bytes().any(|byte| byte.is_ascii_digit()) {
            if is_numbered(line) {
                return found;
            }
            // `Validation at epoch 5`. Below a number of the training are its own values.
            // The marks around a heading are none of a number: `***** Evaluation, epoch 1/3 *****`.
            let inside = line.trim_matches(|c| MARKS.contains(&c) || c == ' ');
            let has_value =
                inside.contains(['.', '%']) || has_setting(inside) || has_result(inside);
            if !counts || has_value || (!is_framed && line.contains('/')) {
                return None;
            }
            let summary = Some(Self::Summary).filter(|_| summary && line.ends_with(':'));
            // Where each begins with its epoch, the training does, too.
            let of_both = inside.contains('=');
            return summary.or(found.filter(|found| of_both || *found == Self::HeldOut));
        }
        summary |= found.is_none() && is_of_results(line);
        // `eval metrics` repeat an evaluation, too.
        if summary { Some(Self::Summary) } else { found }
    }
}

/// `Final results`, whatever they are of.
fn is_of_results(line: &str) -> bool {
    let has = |name: &str| {
        line.split(|c: char| !c.is_alphabetic()).any(|word| word.eq_ignore_ascii_case(name))
    };
    has("final") && (has("results") || has("result"))
}

/// The epoch that a heading names.
pub(super) fn epoch(line: &str) -> Option<f64> {
    const NAME: &[u8] = b"epoch";
    let at =
        line.as_bytes().windows(NAME.len()).position(|word| word.eq_ignore_ascii_case(NAME))?;
    let number = line.get(at + NAME.len()..)?.trim_start_matches([' ', ':', '#', '[', '(', '=']);
    let (epoch, _) = scan::count(number)?;
    u32::try_from(epoch).ok().map(f64::from)
}

/// Whether a line announces an evaluation of something: `Evaluating net_a at epoch 1 ...`.
pub(super) fn begins(line: &str) -> bool {
    let mut words = line.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
    let is_one = |word: &str, list: &[&str]| list.iter().any(|it| word.eq_ignore_ascii_case(it));
    (line.ends_with("...") || line.ends_with('\u{2026}'))
        && line.len() <= MAX_LEN
        && words.next().is_some_and(|word| is_one(word, &VERBS))
        // `Evaluating every 500 steps ...` is a plan.
        && !words.any(|word| is_one(word, &PLANS))
}

/// Words for an evaluation that begins.
const VERBS: [&str; 4] = ["evaluate", "evaluating", "validate", "validating"];
/// Words for one that comes later, or of both kinds of data.
const PLANS: [&str; 7] = ["every", "each", "when", "will", "once", "train", "training"];

/// Whether a slash stands between two words: `Train/Val`.
fn has_two_names(line: &str) -> bool {
    let is_letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphabetic);
    memchr::memchr_iter(b'/', line.as_bytes()).any(|at| {
        let (before, after) = line.as_bytes().split_at(at);
        is_letter(before.last()) && is_letter(after.get(1))
    })
}

/// Whether a value follows the counter: `Test error after epoch 1: 5`.
fn has_result(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(counter, value)| {
        counter.trim_end().ends_with(|c: char| c.is_ascii_digit())
            && value.trim_start().starts_with(|c: char| c.is_ascii_digit())
    })
}

/// Whether a line has a setting. The number of a counter is none: `validate (epoch=3)`.
fn has_setting(text: &str) -> bool {
    text.split('=').rev().skip(1).any(|before| {
        let name = before.rsplit(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
        !COUNTERS.iter().any(|known| name.eq_ignore_ascii_case(known))
    })
}

/// Whether a number is directly before `word`, a part of `line`.
fn follows_number(line: &str, word: &str) -> bool {
    let before = line.split_once(word).map(|(before, _)| before.trim_end());
    before.is_some_and(|before| before.ends_with(|c: char| c.is_ascii_digit()))
}

/// Whether a line with a word for held-out data is a setting, not the heading of an evaluation: a plural counter
/// and its number, and nothing else. `Validation batches: 10`.
pub(super) fn is_setting(line: &str) -> bool {
    let number = line.trim_end().trim_end_matches(|c: char| c.is_ascii_digit() || c == ',');
    let name = number.trim_end_matches([' ', '\t', ':', '=']);
    let last = name.rsplit([' ', '_', '\t']).next().unwrap_or_default();
    number.len() < line.trim_end().len()
        && name.len() < number.len()
        && PLURALS.iter().any(|plural| last.eq_ignore_ascii_case(plural))
}

/// A word, a hyphen and a number, and nothing else: `Eval-2`.
fn is_numbered(line: &str) -> bool {
    line.split_once('-').is_some_and(|(word, number)| {
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number && word.bytes().all(|byte| byte.is_ascii_alphabetic())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evaluation_of_something_begins_with_its_verb() {
        for line in ["++> Evaluate net_a at epoch 1 ...", "Validating model on 500 images…"] {
            assert!(begins(line), "{line}");
        }
        for line in [
            "Evaluating every 500 steps ...",
            "Evaluating on train data ...",
            "Evaluate epoch 1 finished.",
            "Loading validation data ...",
            "...",
        ] {
            assert!(!begins(line), "{line}");
        }
        assert_eq!(epoch("[Epoch 3] Validation:"), Some(3.0));
        assert_eq!((epoch("epoch of 5"), epoch("step 5")), (None, None));
    }

    #[test]
    fn number_behind_a_plural_is_a_setting() {
        for line in
            ["Eval batches: 0", "test steps = 50", "Validation iterations 100", "val_steps: 5"]
        {
            assert!(is_setting(line), "{line}");
        }
        for line in [
            "Validation at epoch 5",
            "Evaluation after 500 steps",
            "Test steps: 5/90",
            "steps",
            "",
            "5",
        ] {
            assert!(!is_setting(line), "{line}");
        }
    }

    #[test]
    fn lines_without_numbers_open_sections() {
        for (line, section) in [
            ("Validating", Some(Section::HeldOut)),
            ("Test Error:", Some(Section::HeldOut)),
            ("***** Running Evaluation *****", Some(Section::HeldOut)),
            ("--> EVAL PERFORMANCE", Some(Section::HeldOut)),
            ("Computing validation loss", Some(Section::HeldOut)),
            ("Training", Some(Section::Train)),
            ("***** train metrics *****", Some(Section::Summary)),
            ("Run summary:", Some(Section::Summary)),
            ("Loading the validation set", None),
            ("Validation at epoch 5", Some(Section::HeldOut)),
            ("--- Evaluating (step 500) ---", Some(Section::HeldOut)),
            ("--- validate (epoch=7)-----", Some(Section::HeldOut)),
            ("--- validate (epoch=7, lr=1)-----", None),
            ("Training (epoch=7)", Some(Section::Train)),
            ("== train, epoch=7 ==", Some(Section::Train)),
            ("Train: epoch=7, lr=1", None),
            ("Best model at step 500:", Some(Section::Summary)),
            ("Training epoch 5", None),
            ("Validation epoch 5/10", None),
            ("***** Evaluating perplexity, Epoch 5/10 *****", Some(Section::HeldOut)),
            ("Cross validation...", Some(Section::HeldOut)),
            ("Eval-2", Some(Section::HeldOut)),
            ("Train-2", Some(Section::Train)),
            ("=== Training epoch 5/10 ===", None),
            ("Testing 5", None),
            ("Test accuracy after epoch 1: 95", None),
            ("Test error after epoch 1: 5", None),
            ("Test error after epoch 1:", Some(Section::HeldOut)),
            ("Validation score:", None),
            ("Validation score at epoch 1: 31", None),
            ("*** Evaluating perplexity ***", Some(Section::HeldOut)),
            ("=== Train/Val Epoch 1/3 ===", None),
            ("Train/Val", None),
            ("Calculations for holdout set:", Some(Section::HeldOut)),
            ("=== TEST | SPLIT A ===", None),
            ("--- Train | Val ---", None),
            ("=== TEST SET | AFTER 50 STEPS ===", Some(Section::HeldOut)),
            ("=== TEST STEPS: 50 ===", None),
            ("TEST SET | AFTER 50 STEPS", None),
            ("** Reported on test data **", Some(Section::HeldOut)),
            ("** Reported on train data. **", Some(Section::Train)),
            ("** Test data **", None),
            ("| train/ |  |", None),
            ("the model", None),
            ("=== Final results ===", Some(Section::Summary)),
            ("Results", None),
            ("", None),
        ] {
            assert_eq!(Section::parse(line), section, "{line}");
        }
    }
}
