//! Lines of a block: one key with a value.

/// Maximum length of an item in bytes, and maximum number of words of its value.
const MAX_ITEM: usize = 120;
const MAX_VALUES: usize = 3;

/// Whether a line is one key with a value, or the name of a group of them: `lr: 0.1`, `stats:`.
pub(super) fn is_item(text: &str) -> bool {
    // Several may be in one line, between tabs.
    match text.trim_matches('\t').split_once('\t') {
        Some((first, rest)) => is_one_item(first) && is_item(rest),
        None => is_one_item(text),
    }
}

fn is_one_item(text: &str) -> bool {
    let text = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    let Some((key, value)) = text.split_once([':', '=']).filter(|_| text.len() <= MAX_ITEM) else {
        return false;
    };
    let is_key = key.split_whitespace().count() <= 4 && !key.contains([',', ';']);
    is_key && !value.contains([',', '=']) && value.split_whitespace().count() <= MAX_VALUES
}

/// Whether a line gives a score by its name: a dict such as `{'hit@5': 0.25}`, or an item such as `mAP=0.5`.
pub(super) fn has_score(text: &str) -> bool {
    let is_score = |name: &str| SCORES.iter().any(|score| name.eq_ignore_ascii_case(score));
    let mut words = text.split(|c: char| !c.is_ascii_alphabetic());
    if text.starts_with('{') {
        return text.ends_with('}') && words.any(is_score);
    }
    let key = text.split([':', '=']).next().unwrap_or_default();
    let last = key.split(|c: char| !c.is_ascii_alphabetic()).rfind(|word| !word.is_empty());
    is_item(text) && last.is_some_and(is_score)
}

/// Words for scores.
const SCORES: [&str; 24] = [
    "acc",
    "accuracy",
    "auc",
    "auroc",
    "bleu",
    "cider",
    "dice",
    "f",
    "hit",
    "hits",
    "hr",
    "iou",
    "mae",
    "map",
    "miou",
    "mrr",
    "mse",
    "ndcg",
    "precision",
    "psnr",
    "recall",
    "rmse",
    "rouge",
    "ssim",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_one_key_with_a_value() {
        for line in [
            "lr: 0.1",
            "  a_loss = 5",
            "| > loss: 3.9 (3.5)",
            "stats:",
            "└   loss = 0.5",
            "\ta: 1 (2)\tb: 3 (4)",
        ] {
            assert!(is_item(line), "{line}");
        }
        for line in ["a: 1, b: 2", "a: 1\tb", "step 5 loss 0.5", "loss: 1 a=2", "-----", ""] {
            assert!(!is_item(line), "{line}");
        }
    }

    #[test]
    fn scores_are_known_by_their_names() {
        for line in ["{'hit@5': 0.25}", "mAP=0.5", "top1 accuracy: 0.5"] {
            assert!(has_score(line), "{line}");
        }
        for line in ["{'lr': 0.25}", "birds=0.5", "accuracy 0.5", "accuracy of lr: 0.5", ""] {
            assert!(!has_score(line), "{line}");
        }
    }
}
