//! What stands before a bar.

use crate::grammar::scan;
use crate::observation::Phase;

/// What the text before a bar says of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Desc {
    pub(super) epoch: Option<f64>,
    pub(super) epochs: Option<u64>,
    /// `None` for a bar of neither training nor evaluation, such as that of a download.
    pub(super) phase: Option<Phase>,
    /// Whether it counts epochs: `Epochs`, without a number.
    pub(super) of_epochs: bool,
    /// Whether it is a rehearsal, which nothing is to be told of.
    pub(super) rehearsal: bool,
}

const HELD_OUT: [&str; 9] = [
    "val",
    "valid",
    "validation",
    "validating",
    "validate",
    "eval",
    "evaluation",
    "evaluating",
    "dev",
];
const TEST: [&str; 7] =
    ["test", "testing", "predict", "predicting", "prediction", "inference", "generating"];
const TRAIN: [&str; 12] = [
    "train",
    "training",
    "epoch",
    "iter",
    "iteration",
    "iterations",
    "step",
    "steps",
    "batch",
    "batches",
    "loss",
    "fit",
];

impl Desc {
    /// What `text` says.
    pub(super) fn parse(text: &str) -> Self {
        let mut phase = None;
        let mut of_epochs = false;
        let mut rehearsal = false;
        let mut any = false;
        for word in text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()) {
            any = true;
            let is = |list: &[&str]| list.iter().any(|known| word.eq_ignore_ascii_case(known));
            if is(&HELD_OUT) {
                phase = Some(Phase::Validation);
            } else if is(&TEST) {
                phase = phase.filter(|phase| *phase == Phase::Validation).or(Some(Phase::Test));
            } else if is(&TRAIN) {
                phase = phase.or(Some(Phase::Train));
            }
            of_epochs |= is(&["epochs"]);
            rehearsal |= is(&["sanity"]);
        }
        if !any {
            phase = Some(Phase::Train);
        }
        let (epoch, epochs) = epoch(text);
        Self { epoch, epochs, phase, of_epochs: of_epochs && epoch.is_none(), rehearsal }
    }
}

/// The epoch in `Epoch 1/3`, `epoch: 1`, `Epoch [1/3]`, `Epoch #1`; how many there are.
fn epoch(text: &str) -> (Option<f64>, Option<u64>) {
    let bytes = text.as_bytes();
    let Some(at) = bytes.windows(5).position(|word| word.eq_ignore_ascii_case(b"epoch")) else {
        return (None, None);
    };
    let rest =
        text.get(at + 5..).unwrap_or_default().trim_start_matches([' ', ':', '[', '#', '(', '=']);
    let Some((epoch, rest)) = scan::number(rest) else { return (None, None) };
    let epochs = rest.trim_start().strip_prefix('/').map(str::trim_start).and_then(scan::count);
    (Some(epoch).filter(|epoch| epoch.is_finite()), epochs.map(|(epochs, _)| epochs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_say_the_epoch_and_the_phase() {
        let train = Some(Phase::Train);
        for (text, epoch, epochs, phase) in [
            ("", None, None, train),
            ("Epoch 1/3", Some(1.0), Some(3), train),
            ("Epoch [2 / 3]", Some(2.0), Some(3), train),
            ("Train epoch: 4", Some(4.0), None, train),
            ("epoch 1, loss 0.5", Some(1.0), None, train),
            ("Validation DataLoader 0", None, None, Some(Phase::Validation)),
            ("Epoch 3 test", Some(3.0), None, Some(Phase::Test)),
            ("Evaluating on test set", None, None, Some(Phase::Validation)),
            ("Map", None, None, None),
            ("Downloading shards", None, None, None),
            ("contest", None, None, None),
        ] {
            let found = Desc::parse(text);
            assert_eq!((found.epoch, found.epochs, found.phase), (epoch, epochs, phase), "{text}");
        }
        assert!(Desc::parse("Epochs").of_epochs && !Desc::parse("Epoch 1").of_epochs);
        assert!(Desc::parse("Sanity Checking DataLoader 0").rehearsal);
    }
}
