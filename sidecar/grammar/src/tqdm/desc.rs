//! The description before a bar.

use paceline_lines::observation::Phase;
use paceline_lines::scan;
use paceline_lines::translate;

/// The meaning of the description before a bar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Desc {
    pub(super) epoch: Option<f64>,
    pub(super) epochs: Option<u64>,
    /// `None` for a bar of neither training nor evaluation, such as that of a download.
    pub(super) phase: Option<Phase>,
    /// Whether it counts epochs: `Epochs`, without a number.
    pub(super) of_epochs: bool,
    /// Whether it is a rehearsal such as Lightning's sanity check, which is not reported.
    pub(super) rehearsal: bool,
    /// Whether it counts the steps of the run: `Steps`, and nothing else.
    pub(super) of_steps: bool,
    /// The number of steps of an epoch, beside a counter of them: `Epoch 0: 12/40`.
    pub(super) inner: Option<u64>,
    /// A step without a total: `Step: 120`.
    pub(super) step: Option<u64>,
    /// A step of the epoch with its total, behind the epoch: `Epoch 1/3, step 5/40`.
    pub(super) step_of: Option<(u64, u64)>,
}

const HELD_OUT: [&str; 10] = [
    "val",
    "vali",
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
const TRAIN: [&str; 16] = [
    "train",
    "training",
    "pretraining",
    "finetuning",
    "fitting",
    "learning",
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
    /// Reads a description, in any language.
    pub(super) fn parse(text: &str) -> Self {
        let english = translate::mixed(text);
        let text = english.as_deref().unwrap_or(text);
        let mut phase = None;
        let mut of_epochs = false;
        let mut rehearsal = false;
        let mut any = false;
        let mut other = false;
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
            other |= word.to_ascii_lowercase().ends_with("ing") && !is(&TRAIN) && !is(&["running"]);
        }
        // `Calculating loss`, `Loading train data`.
        phase = phase.filter(|phase| *phase != Phase::Train || !other);
        if !any {
            phase = Some(Phase::Train);
        }
        let (epoch, epochs, inner) = epoch(text);
        let letters = text.trim_matches(|c: char| !c.is_alphabetic());
        let of_steps = ["steps", "step"].iter().any(|word| letters.eq_ignore_ascii_case(word));
        let of_epochs = of_epochs && epoch.is_none();
        let counter = epoch.and_then(|_| step(text));
        let step = counter.filter(|(_, of)| of.is_none()).map(|(step, _)| step);
        let step_of = counter.and_then(|(step, of)| Some((step, of?)));
        Self { epoch, epochs, phase, of_epochs, rehearsal, of_steps, inner, step, step_of }
    }
}

/// The step in `Step: 120`, and its total in `step 5/40`.
fn step(text: &str) -> Option<(u64, Option<u64>)> {
    const NAME: &str = "step";
    let bytes = text.as_bytes();
    let at = bytes.windows(NAME.len()).position(|w| w.eq_ignore_ascii_case(NAME.as_bytes()))?;
    let before = text.get(..at)?.chars().next_back();
    let rest = text.get(at + NAME.len()..)?.trim_start_matches([' ', ':', '=', '#']);
    let (step, after) = scan::count(rest)?;
    if before.is_some_and(char::is_alphanumeric) {
        return None;
    }
    if let Some(of) = after.trim_start().strip_prefix('/') {
        let (of, after) = scan::count(of.trim_start())?;
        return scan::ends_before(after).then_some((step, Some(of)));
    }
    scan::ends_before(after).then_some((step, None))
}

/// The epoch in `Epoch 1/3`, `epoch: 1`, `Epoch [1/3]`, `Epoch #1`, `Train 1`, the number of epochs,
/// and that of the steps of an epoch beside their counter. torchtune's `1|25|Loss: 0.5` begins with the epoch and the step.
fn epoch(text: &str) -> (Option<f64>, Option<u64>, Option<u64>) {
    let bytes = text.as_bytes();
    let word = |name: &[u8]| {
        let at = bytes.windows(name.len()).position(|word| word.eq_ignore_ascii_case(name))?;
        text.get(at + name.len()..)
    };
    let Some(rest) = word(b"epochs").or_else(|| word(b"epoch")) else {
        return (lead(text).or_else(|| short(text)), None, None);
    };
    let rest = rest.trim_start_matches([' ', ':', '[', '#', '(', '=']);
    let Some((epoch, rest)) = scan::number(rest) else { return (None, None, None) };
    let total = |rest: &'_ str| {
        let (total, rest) = scan::count(rest.trim_start().strip_prefix('/')?.trim_start())?;
        Some((total, rest.len()))
    };
    let epochs = total(rest);
    let after = epochs.map_or(rest.len(), |(_, left)| left);
    let rest = rest.get(rest.len() - after..).unwrap_or_default();
    let counter = rest.trim_start_matches([' ', ':', '[', ']', '(', ')', ',']);
    let inner = scan::count(counter).and_then(|(_, rest)| total(rest));
    let epoch = Some(epoch).filter(|epoch| epoch.is_finite());
    (epoch, epochs.map(|(epochs, _)| epochs), inner.map(|(inner, _)| inner))
}

/// The epoch in `EP 3`, `ep: 3` and `EP_train:3`: behind the short word, which may have the name of the data.
fn short(text: &str) -> Option<f64> {
    let is_short = text.get(..2).is_some_and(|word| word.eq_ignore_ascii_case("ep"));
    let rest = text.get(2..).filter(|_| is_short)?;
    let mark = |c: char| matches!(c, ' ' | ':' | '_' | '-' | '=' | '#');
    let after = rest.trim_start_matches(mark);
    let data = after.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let word = after.get(..after.len() - data.len())?;
    let is_of_data = || {
        let lists = [&HELD_OUT[..], &TEST, &TRAIN];
        lists.iter().any(|list| list.iter().any(|known| word.eq_ignore_ascii_case(known)))
    };
    let is_named = word.is_empty() || (after.len() < rest.len() && is_of_data());
    let (epoch, rest) = scan::count(data.trim_start_matches(mark)).filter(|_| is_named)?;
    let is_whole = scan::ends_before(rest) && !rest.trim_start().starts_with('/');
    u32::try_from(epoch).ok().map(f64::from).filter(|_| is_whole)
}

/// The epoch in `Train 3`, and in `3|25|Loss`.
fn lead(text: &str) -> Option<f64> {
    let number = if let Some((epoch, rest)) = scan::count(text) {
        let (_, rest) = scan::count(rest.strip_prefix('|')?)?;
        rest.starts_with('|').then_some(epoch)?
    } else {
        let (word, number) = text.split_once(char::is_whitespace)?;
        let trains = ["train", "training"].iter().any(|known| word.eq_ignore_ascii_case(known));
        let (epoch, rest) = scan::count(number.trim_start()).filter(|_| trains)?;
        rest.is_empty().then_some(epoch)?
    };
    u32::try_from(number).ok().map(f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_give_the_epoch_and_the_phase() {
        let train = Some(Phase::Train);
        for (text, epoch, epochs, phase) in [
            ("", None, None, train),
            ("Epoch 1/3", Some(1.0), Some(3), train),
            ("Epoch [2 / 3]", Some(2.0), Some(3), train),
            ("Train epoch: 4", Some(4.0), None, train),
            ("epoch 1, loss 0.5", Some(1.0), None, train),
            ("Epochs 0/4. Running Loss:    0.5", Some(0.0), Some(4), train),
            ("Train     2", Some(2.0), None, train),
            ("3|25|Loss: 0.5", Some(3.0), None, train),
            ("EP 4", Some(4.0), None, None),
            ("ep_train:2", Some(2.0), None, train),
            ("EP_valid:2", Some(2.0), None, Some(Phase::Validation)),
            ("EP_map:2", None, None, None),
            ("Ep 1/3", None, None, None),
            ("episode 4", None, None, None),
            ("Calculating loss...", None, None, None),
            ("Validation DataLoader 0", None, None, Some(Phase::Validation)),
            ("Epoch 3 test", Some(3.0), None, Some(Phase::Test)),
            ("Evaluating on test set", None, None, Some(Phase::Validation)),
            ("验证", None, None, Some(Phase::Validation)),
            ("Map", None, None, None),
            ("Downloading shards", None, None, None),
            ("contest", None, None, None),
        ] {
            let found = Desc::parse(text);
            assert_eq!((found.epoch, found.epochs, found.phase), (epoch, epochs, phase), "{text}");
        }
        assert!(Desc::parse("Epochs").of_epochs && !Desc::parse("Epoch 1").of_epochs);
        assert_eq!(Desc::parse("[Epoch 0: 12/40]loss: 0.5").inner, Some(40));
        assert_eq!(Desc::parse("Epoch 1/3 [5/90]").inner, Some(90));
        assert_eq!(Desc::parse("Epoch 1/3").inner, None);
        let counted = Desc::parse("Epoch 1/3, step 5/40 done (loss: 0.5)");
        assert_eq!((counted.step, counted.step_of), (None, Some((5, 40))));
        let counted = Desc::parse("Epoch 1/3, step 5 (loss: 0.5)");
        assert_eq!((counted.step, counted.step_of), (Some(5), None));
        assert!(Desc::parse("Sanity Checking DataLoader 0").rehearsal);
    }
}
