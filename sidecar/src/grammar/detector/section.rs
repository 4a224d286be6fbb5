//! Lines without a number that say what the lines below are about: `Validating`, `Test Error:`,
//! `***** train metrics *****`.

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
/// Words of an evaluation, of the training and of a summary.
const HELD_OUT: [&str; 13] = [
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
];
const TRAIN: [&str; 3] = ["training", "train", "trainer"];
const SUMMARY: [&str; 5] = ["metrics", "summary", "history", "hyperparameters", "best"];
/// Words that may accompany them.
const OTHERS: [&str; 27] = [
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
    "epoch",
    "mode",
    "net",
    "now",
    "stage",
    "final",
];

impl Section {
    /// The section that `line` opens.
    pub(super) fn parse(line: &str) -> Option<Self> {
        // A row between bars names a group of values.
        if line.len() > MAX_LEN || line.bytes().any(|byte| byte.is_ascii_digit() || byte == b'|') {
            return None;
        }
        let mut found = None;
        let mut summary = false;
        let words = line.split(|c: char| !c.is_alphabetic() && c != '-');
        for word in words.map(|word| word.trim_matches('-')).filter(|word| !word.is_empty()) {
            let is = |list: &[&str]| list.iter().any(|known| word.eq_ignore_ascii_case(known));
            if is(&HELD_OUT) {
                found = Some(Self::HeldOut);
            } else if is(&TRAIN) {
                found = found.or(Some(Self::Train));
            } else if is(&SUMMARY) {
                summary = true;
            } else if !is(&OTHERS) {
                return None;
            }
        }
        // `eval metrics` repeat an evaluation, too.
        if summary { Some(Self::Summary) } else { found }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("Testing 5", None),
            ("| train/ |  |", None),
            ("the model", None),
            ("", None),
        ] {
            assert_eq!(Section::parse(line), section, "{line}");
        }
    }
}
