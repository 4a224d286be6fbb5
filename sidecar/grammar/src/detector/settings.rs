//! Lines that list settings: `Hyperparameters: mask_loss: 1.0`, `Namespace(lr=0.1, …)`. With the name of a loss, they
//! give its weight or its kind.

/// The last words before the first mark of such a line.
const WORDS: [&str; 18] = [
    "args",
    "arguments",
    "coefficients",
    "config",
    "configs",
    "configuration",
    "flags",
    "hparams",
    "hyper-parameters",
    "hyperparameters",
    "hyperparams",
    "hypers",
    "namespace",
    "options",
    "parameters",
    "params",
    "settings",
    "weights",
];
/// The longest text before the first mark, in bytes.
const MAX_NAME: usize = 48;

/// Whether a line lists settings.
#[inline]
pub(super) fn are_listed(text: &str) -> bool {
    let bytes = text.as_bytes();
    let start = bytes.get(..=MAX_NAME).unwrap_or(bytes);
    let is_mark = |byte: &u8| matches!(byte, b':' | b'=' | b'(' | b'{' | b'[');
    let Some(name) = start.iter().position(is_mark) else { return false };
    let name = start.get(..name).unwrap_or_default().trim_ascii_end();
    let is_last = name.last().is_some_and(|last| b"sngeSNGE".contains(last));
    is_last && ends_in_word(name)
}

/// Whether the last word of a name is one of [`WORDS`].
fn ends_in_word(name: &[u8]) -> bool {
    let is_gap = |byte: &u8| matches!(byte, b' ' | b'_' | b'.' | b'/');
    let last = name.rsplit(is_gap).next().unwrap_or_default();
    WORDS.iter().any(|word| last.eq_ignore_ascii_case(word.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_known_by_their_heading() {
        for line in [
            "Hyperparameters: mask_loss: 1.0",
            "hyper-parameters = {'box_loss': 7.5}",
            "Namespace(lr=0.1, mask_loss=1.0)",
            "Training config: loss=0.5",
            "loss_weights: {'loss_cls': 1.0}",
            "weights: box_loss: 7.5, cls_loss: 0.5",
        ] {
            assert!(are_listed(line), "{line}");
        }
        for line in [
            "step 5: loss 0.5",
            "loss: 0.5 (weights: 3)",
            "loss weight: 0.5 loss: 0.3",
            "epoch 1, parameters updated, loss 0.5",
            "",
        ] {
            assert!(!are_listed(line), "{line}");
        }
    }
}
