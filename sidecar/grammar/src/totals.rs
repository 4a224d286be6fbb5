//! Parts that end in their sum, where no name has the word "loss": `[L1: 0.5][Style: 0.25][Total: 0.75]`.

use paceline_lines::scan;

use super::key_value::KeyValue;

/// The name of a sum.
const TOTAL: &str = "total";
/// Maximum number of parts.
const MAX_PARTS: usize = 16;
/// How much of a total may be lost by rounding its parts.
const MAX_ROUNDING: f64 = 1e-3;
/// Names of parts of a loss. Without one of them, the sum may be one of anything.
const PARTS: [&str; 32] = [
    "adv",
    "adversarial",
    "bbox",
    "bce",
    "box",
    "ce",
    "cls",
    "content",
    "dice",
    "feat",
    "focal",
    "gan",
    "iou",
    "kl",
    "kld",
    "l",
    "lpips",
    "mae",
    "mask",
    "mse",
    "nll",
    "obj",
    "perceptual",
    "rec",
    "recon",
    "reg",
    "rpn",
    "seg",
    "ssim",
    "style",
    "tv",
    "vgg",
];
/// Names of times, of memory and of counts. A sum of these is not a loss.
const OTHERS: [&str; 18] = [
    "backward", "bwd", "cpu", "data", "forward", "free", "fwd", "gpu", "load", "mem", "memory",
    "real", "step", "sys", "time", "used", "user", "wait",
];

/// Names of values that no loss has as a part.
const SCORES: [&str; 9] =
    ["acc", "accuracy", "auc", "f", "map", "return", "reward", "score", "success"];

/// Whether a line may have such a sum, by its start: a counter or a bracket.
#[inline]
pub(super) fn may_begin(line: &str) -> bool {
    // With the bit of small letters, a bracket is a brace.
    let first = line.as_bytes().first().map(|first| first | 0x20);
    matches!(first, Some(b'{' | b'e' | b'i' | b's' | b'b' | b't'))
}

/// The same for parts behind the name of the loss: `loss: x 0.5, y 0.25, total 0.75`.
pub(super) fn behind_name(line: &str) -> Option<String> {
    let at = memchr::memmem::find(line.as_bytes(), NAME.as_bytes())?;
    let (before, parts) = line.split_at_checked(at)?;
    let parts = parts.strip_prefix(NAME)?;
    // The loss of some data, or one with a longer name.
    if before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
        || KeyValue::held_out(before).is_some()
    {
        return None;
    }
    Some(format!("{before}{}", as_loss(parts)?))
}

/// The name of a loss before its parts.
const NAME: &str = "loss: ";

/// A line with such a sum, which is then called a loss.
pub(super) fn as_loss(line: &str) -> Option<String> {
    let mut parts: Vec<(&str, f64)> = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find(|c: char| c.is_alphabetic()) {
        let named = rest.get(at..)?;
        let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        let length = named.find(|c| !is_of_name(c)).unwrap_or(named.len());
        let (name, after) = named.split_at_checked(length)?;
        rest = after;
        let Some((value, after)) = decimal(after.trim_start_matches([' ', '\t', ':', '='])) else {
            parts.clear();
            continue;
        };
        rest = after;
        if name.eq_ignore_ascii_case(TOTAL) && is_sum(value, &parts) {
            let before = line.get(..line.len() - named.len())?;
            return Some(format!("{before}total_loss{}", named.get(length..)?));
        }
        parts.push((name, value));
        if parts.len() > MAX_PARTS {
            return None;
        }
    }
    None
}

/// A number with a point and without a unit, and the text after it.
fn decimal(text: &str) -> Option<(f64, &str)> {
    let (value, after) = scan::value(text)?;
    let number = text.get(..text.len() - after.len())?;
    let is_plain = number.contains('.') && number.bytes().all(|byte| !byte.is_ascii_alphabetic());
    // In `0.5 s` the unit is a word of its own.
    let unit = after.strip_prefix(' ').and_then(|after| after.split(' ').next());
    let has_unit = unit.is_some_and(|unit| ["s", "ms", "GB", "MB", "%"].contains(&unit));
    (is_plain && !has_unit).then_some((value, after))
}

/// Whether `total` is the sum of the last of the parts, which are those of a loss.
fn is_sum(total: f64, parts: &[(&str, f64)]) -> bool {
    let words = |name: &'static [&str]| {
        move |part: &str| {
            let mut words = part.split(|c: char| !c.is_ascii_alphabetic());
            words.any(|word| name.iter().any(|known| word.eq_ignore_ascii_case(known)))
        }
    };
    let (is_part, is_other) = (words(&PARTS), words(&OTHERS));
    let (mut sum, mut known) = (0.0, 0);
    for (count, (name, value)) in (1..).zip(parts.iter().rev()) {
        if is_other(name) {
            return false;
        }
        sum += value;
        known += u32::from(is_part(name));
        if count > 1 && known > 0 && (sum - total).abs() <= total.abs() * MAX_ROUNDING {
            return true;
        }
    }
    // Each part may have a weight.
    let is_score = words(&SCORES);
    let is_near = (sum / 2.0..=sum * 2.0).contains(&total);
    let may_be = |(name, value): &(&str, f64)| value.abs() < total && !is_score(name);
    parts.len() > 2 && known > 1 && is_near && parts.iter().all(may_be)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_parts_become_losses() {
        for (line, expected) in [
            (
                "[8/90] [L1: 1.5][GAN: 0.25][Total: 1.75] 2.5s",
                "[8/90] [L1: 1.5][GAN: 0.25][total_loss: 1.75] 2.5s",
            ),
            (
                "step 1, policy=4.5 mse=0.25 reg=0.5 total=6.5 (90.5 pos/s)",
                "step 1, policy=4.5 mse=0.25 reg=0.5 total_loss=6.5 (90.5 pos/s)",
            ),
            (
                "Epoch 1: lr 0.01 style: 2.5 tv: 0.125 total: 2.625",
                "Epoch 1: lr 0.01 style: 2.5 tv: 0.125 total_loss: 2.625",
            ),
        ] {
            assert!(may_begin(line));
            assert_eq!(as_loss(line).as_deref(), Some(expected));
        }
        for line in [
            "step 1 l1: 1.5 gan: 0.25 total: 2.5",
            "step 1 policy: 4.5 mse: 0.25 reg: 0.5 total: 4.25",
            "step 1 apples: 4.5 mse: 0.25 pears: 0.5 total: 6.5",
            "step 1 iou: 0.61 dice: 0.71 acc: 0.81 total: 0.91",
            "step 1 kl 0.5 reg 0.25 reward 1.5 total 2.0",
            "step 1 box: 0.61 cls: 0.71 mask: 0.81 total: 12.5",
            "step 1 l1: 1.5 total: 1.5",
            "step 1 apples: 1.5 pears: 0.25 total: 1.75",
            "step 1 data: 1.5 content: 0.25 total: 1.75",
            "step 1 box: 3 cls: 2 total: 5",
            "step 1 box: 1.5 s cls: 0.25 s total: 1.75 s",
            "step 1 box: 1.5 then cls: 0.25 in total: 0.25",
            "total",
            "",
        ] {
            assert_eq!(as_loss(line), None, "{line}");
        }
        assert!(!may_begin("cls: 0.5 total: 1.5") && !may_begin(""));
    }

    #[test]
    fn sums_behind_the_name_of_a_loss_are_that_loss() {
        let line = "8: found 5, loss: x 1.5, cls 0.25, total 1.75";
        let expected = "8: found 5, x 1.5, cls 0.25, total_loss 1.75";
        assert_eq!(behind_name(line).as_deref(), Some(expected));
        for line in [
            "loss: x 1.5, cls 0.25, total 2.5",
            "x 1.5, cls 0.25, total 1.75",
            "loss: ",
            "Epoch 1 test loss: x 1.5, cls 0.25, total 1.75",
            "Epoch 1 [Val] loss: x 1.5, cls 0.25, total 1.75",
            "my_loss: x 1.5, cls 0.25, total 1.75",
        ] {
            assert_eq!(behind_name(line), None, "{line}");
        }
    }
}
