//! The words around the numbers of a line.

use std::ops::{BitOr, BitOrAssign};

use paceline_lines::names::OTHER_LOSSES;
use paceline_lines::observation::Phase;

/// The roles of a word; a word may have several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Role(u16);

impl Role {
    /// May precede "loss" without changing its meaning.
    pub(super) const BEFORE: Self = Self(1);
    /// May follow it.
    pub(super) const AFTER: Self = Self(1 << 1);
    /// A line with such a word repeats an earlier loss.
    pub(super) const REPEATS: Self = Self(1 << 2);
    pub(super) const TRAIN: Self = Self(1 << 3);
    pub(super) const HELD_OUT: Self = Self(1 << 4);
    pub(super) const TEST: Self = Self(1 << 5);
    /// Between a loss and the counter that precedes its value: `cost after step 5: 0.5`.
    pub(super) const LINK: Self = Self(1 << 6);
    /// A time beside that of a batch.
    pub(super) const BESIDE_TIME: Self = Self(1 << 7);
    /// The values are means, of an epoch if no step is named.
    pub(super) const MEAN: Self = Self(1 << 8);
    /// Of the time of something, together with other words.
    pub(super) const TIMED: Self = Self(1 << 9);
    /// Of a copy of the model, a wish or a condition. In a sentence with such a word, the loss is not that of the
    /// step: `load the model of epoch 3 with loss 0.5`.
    pub(super) const UNSURE: Self = Self(1 << 10);
    /// The model. Beside a step or an epoch, it may be an earlier one: `the model of step 5`.
    pub(super) const MODEL: Self = Self(1 << 11);
    /// A sentence before is about the training: `Training stats. Loss: 0.5`.
    pub(super) const ABOUT_TRAINING: Self = Self(1 << 12);
    /// Where a number belongs to the data that the loss is of.
    pub(super) const DATA: Self = Self(Self::TRAIN.0 | Self::HELD_OUT.0 | Self::TEST.0);

    /// Whether one of `roles` is among these.
    pub(super) fn any(self, roles: Self) -> bool {
        self.0 & roles.0 != 0
    }

    /// The data that words with these roles speak of.
    pub(super) fn phase(self) -> Option<Phase> {
        if self.any(Self::HELD_OUT) {
            Some(Phase::Validation)
        } else if self.any(Self::TEST) {
            Some(Phase::Test)
        } else {
            self.any(Self::TRAIN).then_some(Phase::Train)
        }
    }
}

impl BitOr for Role {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Role {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Maximum length of a known word in bytes.
const MAX_LEN: usize = 16;

/// The roles of `word`, in any case and without punctuation around it.
pub(super) fn role(word: &str) -> Role {
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let is_bare = ends(word.as_bytes().first()) && ends(word.as_bytes().last());
    let word = if is_bare { word } else { word.trim_matches(|c: char| !c.is_alphanumeric()) };
    let mut small = [0; MAX_LEN];
    let Some(small) = small.get_mut(..word.len()) else { return Role::default() };
    small.copy_from_slice(word.as_bytes());
    small.make_ascii_lowercase();
    let around = Role::BEFORE | Role::AFTER;
    match &*small {
        b"train" | b"training" | b"trn" | b"tr" => around | Role::TRAIN,
        b"val" | b"vld" | b"vali" | b"valid" | b"validation" | b"eval" | b"evaluation" | b"dev" | b"cv"
        | b"heldout" | b"held-out" | b"cross-validation" | b"crossval" | b"cross-val" | b"cval" | b"xval" => around | Role::HELD_OUT,
        b"validating" | b"validate" | b"validated" | b"evaluating" | b"evaluate" | b"evaluated"
        | b"held" => Role::BEFORE | Role::HELD_OUT,
        b"test" | b"tst" => around | Role::TEST,
        b"testing" => Role::BEFORE | Role::TEST,
        b"avg" | b"mean" => around | Role::MEAN,
        b"step" | b"epoch" | b"batch" | b"value" | b"total" | b"current" | b"curr" | b"cur" => around,
        b"average" | b"averaged" => Role::BEFORE | Role::MEAN,
        // Means, counters and units.
        b"running" | b"smoothed" | b"smooth" | b"moving" | b"ema" | b"last" | b"latest"
        | b"overall" | b"iter" | b"iteration" | b"minibatch" | b"mini-batch" | b"global" | b"local" | b"final" | b"the" | b"set" | b"lm" | b"hz" | b"log" | b"sum"
        | b"tot" | b"all" | b"combined" | b"joint" | b"full" | b"raw" | b"weighted" | b"accumulated" | b"cumulative"
        // Parts of a loss. They count where no line has a whole one.
        | b"mlm" | b"nll" | b"ce" | b"cross" | b"cross-entropy" | b"mse" | b"bce" | b"kl" | b"l1"
        | b"l2" | b"mae" | b"rmse" | b"huber" | b"hinge" | b"focal" | b"dice" | b"triplet"
        | b"reconstruction" | b"recon" | b"rec" | b"d" | b"g" | b"disc" | b"discriminator"
        | b"gen" | b"generator" | b"gan" | b"adversarial" | b"adv" | b"policy" | b"actor"
        | b"critic" | b"surrogate" | b"function" | b"q" | b"v" | b"pi" | b"vf" | b"pg" | b"reward"
        | b"world" | b"dynamics" | b"content" | b"style" | b"perceptual" | b"feature"
        | b"cls" | b"classification" | b"classifier" | b"box" | b"bbox" | b"obj" | b"objectness"
        | b"conf" | b"iou" | b"giou" | b"rpn" | b"seg" | b"segmentation" | b"depth" | b"pose"
        | b"localization" | b"loc" | b"landmark" | b"keypoint" | b"heatmap" | b"regression"
        | b"contrastive" | b"distillation" | b"distill" | b"kd" | b"student" | b"consistency"
        | b"supervised" | b"unsupervised" | b"sup" | b"unsup" | b"domain" | b"encoder"
        | b"decoder" | b"vq" | b"commit" | b"commitment" | b"codebook" | b"vae" | b"elbo"
        | b"mel" | b"stop" | b"pitch" | b"energy" | b"postnet" | b"aux"
        | b"auxiliary" | b"reg" | b"regularization" | b"meta" | b"inner" | b"outer" | b"task"
        | b"main" | b"ctc" | b"att" | b"attention" | b"ranking" | b"router" | b"balancing" => {
            Role::BEFORE
        }
        b"is" | b"was" | b"now" => Role::AFTER,
        b"best" | b"lowest" | b"saved" | b"saving" | b"checkpoint" | b"improved" | b"restored"
        | b"restoring" | b"early" | b"stopping" | b"loading" | b"loaded" | b"resumed"
        | b"resuming" | b"previous" | b"initial" | b"optimal" | b"patience" | b"minimum" => {
            Role::REPEATS
        }
        b"model" => Role::BEFORE | Role::MODEL,
        b"dumped" | b"expect" | b"expected" | b"exported" | b"goal" | b"if" | b"load" | b"reload" | b"restore"
        | b"resume" | b"selected" | b"snapshot" | b"stored" | b"target" | b"unless" | b"until"
        | b"using" | b"weights" | b"when" | b"writing" | b"written" | b"wrote" => Role::UNSURE,
        b"at" | b"after" | b"on" | b"over" | b"for" => Role::LINK,
        b"eta" | b"data_time" => Role::BESIDE_TIME,
        b"data" => Role::BESIDE_TIME | Role::TIMED,
        b"t" | b"time" | b"cost" | b"per" | b"s" | b"sec" | b"secs" | b"seconds" | b"ms" | b"took"
        | b"takes" | b"duration" | b"latency" | b"elapsed" | b"timing" => Role::TIMED,
        [word @ .., b'0'..=b'9'] => of_numbered(word),
        _ => Role::default(),
    }
}

/// The role of the last part of a name, if that says the data: `run_test`.
pub(super) fn role_of_end(word: &str) -> Role {
    let data = ["train", "test", "val", "valid", "dev", "eval"];
    match word.rsplit_once('_') {
        Some((name, last)) if !name.is_empty() && data.contains(&last) => role(last),
        _ => Role::default(),
    }
}

/// Whether an unknown `word` may be the name of a part: `KGE loss: 0.5`.
pub(super) fn may_be_part(word: &str) -> bool {
    let is_other = OTHER_LOSSES.iter().any(|other| word.eq_ignore_ascii_case(other));
    (2..=MAX_LEN).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_alphabetic())
        && role(word) == Role::default()
        && !is_other
}

/// Whether an unknown `word` may be the name of the data before `validation loss`: `wiki_en`, `web/c4`.
pub(super) fn may_be_data_set(word: &str) -> bool {
    let is_other = |part: &str| {
        role(part).any(Role::REPEATS)
            || OTHER_LOSSES.iter().any(|other| part.eq_ignore_ascii_case(other))
    };
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.len() > 1
        && !word.split(|c: char| !c.is_alphanumeric()).any(is_other)
}

/// The roles of `valid_1` and `test0`: those of the word before the number, if it is one of data.
fn of_numbered(word: &[u8]) -> Role {
    let is_end = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
    let length = word.iter().rposition(|byte| !is_end(byte)).map_or(0, |last| last + 1);
    match word.get(..length).and_then(|word| str::from_utf8(word).ok()) {
        Some(
            word
            @ ("train" | "training" | "val" | "valid" | "validation" | "eval" | "test" | "dev"),
        ) => role(word),
        _ => Role::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_known_in_any_case_and_with_punctuation() {
        assert_eq!(role("Val."), Role::BEFORE | Role::AFTER | Role::HELD_OUT);
        assert_eq!(role("BEST"), Role::REPEATS);
        for word in ["", "unknown", "a_word_that_is_longer_than_any", "é"] {
            assert_eq!(role(word), Role::default(), "{word}");
        }
        assert_eq!((Role::TRAIN | Role::HELD_OUT).phase(), Some(Phase::Validation));
    }
}
