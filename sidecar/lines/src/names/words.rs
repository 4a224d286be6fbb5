//! The words of a name in any notation: `val_loss`, `Loss/val`, `valLoss`.

use std::ops::BitOr;

use super::OTHER_LOSSES;

/// Maximum number of words; further ones are ignored.
const MAX_WORDS: usize = 32;
/// Maximum length of a known word in bytes; a longer one has no kind.
const MAX_WORD_LEN: usize = 16;

/// The kinds of a word; a word may have several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kinds(u32);

impl Kinds {
    pub(super) const LOSS: Self = Self(1);
    pub(super) const TRAIN: Self = Self(1 << 1);
    pub(super) const HELD_OUT: Self = Self(1 << 2);
    pub(super) const TEST: Self = Self(1 << 3);
    /// With this word, a name that contains "loss" is about something else, or about an extreme.
    pub(super) const NO_LOSS: Self = Self(1 << 4);
    pub(super) const RUNNING: Self = Self(1 << 5);
    pub(super) const STEP: Self = Self(1 << 6);
    pub(super) const MANY_STEPS: Self = Self(1 << 7);
    pub(super) const EPOCH: Self = Self(1 << 8);
    pub(super) const TIME: Self = Self(1 << 9);
    pub(super) const SECOND: Self = Self(1 << 10);
    pub(super) const MILLI: Self = Self(1 << 11);
    pub(super) const MICRO: Self = Self(1 << 12);
    pub(super) const PER: Self = Self(1 << 13);
    /// May accompany a time without making it the time of something else.
    pub(super) const BESIDE: Self = Self(1 << 14);
    /// Another name of a loss. It counts only among words that are all known.
    pub(super) const WEAK: Self = Self(1 << 15);
    /// May accompany a loss without making it a part of another one.
    pub(super) const WHOLE: Self = Self(1 << 16);
    /// The time between two lines, but also another name of a loss.
    pub(super) const COST: Self = Self(1 << 17);
    /// "loss" with the name of a part glued to it: `discloss`.
    pub(super) const GLUED: Self = Self(1 << 19);
    /// At the end of a name that contains "loss", it makes the name that of a setting.
    pub(super) const SETTING: Self = Self(1 << 18);

    /// The kinds of a word in lower case.
    fn from_word(word: &[u8]) -> Self {
        match word {
            b"loss" | b"losses" | b"nelbo" | b"logloss" | b"closs" | b"mloss" | b"lossvalue" => {
                Self::LOSS
            }
            b"avgloss" | b"meanloss" | b"totalloss" => Self::LOSS | Self::WHOLE,
            b"batchloss" | b"steploss" => Self::LOSS | Self::STEP,
            b"epochloss" => Self::LOSS | Self::EPOCH,
            b"runningloss" => Self::LOSS | Self::RUNNING,
            b"xent" | b"crossentropy" | b"nll" | b"objective" | b"objf" => Self::WEAK,
            b"cost" | b"costs" => Self::WEAK | Self::COST,
            b"train" | b"training" | b"trn" | b"tr" | b"trained" => Self::TRAIN,
            b"trainloss" | b"trainingloss" | b"tloss" => Self::TRAIN | Self::LOSS,
            b"val" | b"vld" | b"vali" | b"valid" | b"validation" | b"validate" | b"validating"
            | b"dev" | b"eval" | b"evals" | b"evaluate" | b"evaluating" | b"evaluation"
            | b"held" | b"heldout" | b"holdout" | b"cv" | b"cval" | b"xval" | b"crossval" => {
                Self::HELD_OUT
            }
            b"valloss" | b"evalloss" | b"validloss" | b"validationloss" | b"vloss" | b"devloss" => {
                Self::HELD_OUT | Self::LOSS
            }
            b"test" | b"testing" | b"tst" => Self::TEST,
            b"testloss" => Self::TEST | Self::LOSS,
            b"acc" | b"accuracy" | b"alpha" | b"anneal" | b"annealing" | b"begin" | b"best"
            | b"cap" | b"change" | b"clip" | b"coef" | b"coeff" | b"coefficient" | b"count"
            | b"decay" | b"decrease" | b"delta" | b"diff" | b"entropy" | b"eps" | b"epsilon"
            | b"every" | b"factor" | b"fn" | b"freq" | b"frequency" | b"from" | b"function"
            | b"gamma" | b"gap" | b"grad" | b"gradient" | b"gradnorm" | b"highest" | b"hp"
            | b"hparam" | b"hparams" | b"improvement" | b"init" | b"initial" | b"lam"
            | b"lambda" | b"lossless" | b"lowest" | b"lr" | b"margin" | b"mask" | b"max"
            | b"min" | b"mode" | b"mult" | b"multiplier" | b"name" | b"norm" | b"num"
            | b"packet" | b"patience" | b"prev" | b"previous" | b"ramp" | b"rampup" | b"ratio"
            | b"reduction" | b"runtime" | b"scale" | b"scaler" | b"scaling" | b"schedule"
            | b"scores" | b"signs" | b"start" | b"std" | b"stddev" | b"target" | b"temperature"
            | b"threshold" | b"tol" | b"tolerance" | b"type" | b"until" | b"use" | b"var"
            | b"variance" | b"warmup" | b"weight" | b"weighting" | b"weights" | b"window" => {
                Self::NO_LOSS
            }
            b"ema" | b"ewma" | b"moving" | b"running" | b"smooth" | b"smoothed" => Self::RUNNING,
            b"batch" | b"it" | b"ite" | b"iter" | b"iteration" | b"minibatch" | b"step"
            | b"update" => Self::STEP,
            b"batches" | b"iterations" | b"iters" | b"its" | b"steps" | b"updates" => {
                Self::MANY_STEPS | Self::SETTING
            }
            b"after" | b"backend" | b"beta" | b"bins" | b"bits" | b"bound" | b"buffer"
            | b"cache" | b"capacity" | b"chunk" | b"chunks" | b"clamp" | b"cnt" | b"delay"
            | b"dim" | b"dtype" | b"enabled" | b"end" | b"epochs" | b"examples" | b"history"
            | b"id" | b"idx" | b"index" | b"items" | b"k" | b"lag" | b"layers" | b"len"
            | b"length" | b"level" | b"limit" | b"log" | b"n" | b"offset" | b"option"
            | b"order" | b"parallel" | b"period" | b"power" | b"print" | b"rate" | b"samples"
            | b"save" | b"seed" | b"sigma" | b"size" | b"smoothing" | b"stop" | b"tau"
            | b"terms" | b"topk" | b"ver" | b"version" | b"width" => Self::SETTING,
            b"interval" => Self::BESIDE | Self::SETTING,
            b"epoch" => Self::EPOCH,
            b"dt" | b"duration" | b"elap" | b"elapsed" | b"latency" | b"takes" | b"timing"
            | b"took" => Self::TIME,
            b"time" => Self::TIME | Self::NO_LOSS,
            b"s" | b"sec" | b"second" => Self::SECOND,
            b"seconds" | b"secs" => Self::SECOND | Self::TIME | Self::NO_LOSS,
            b"ms" | b"millis" | b"milliseconds" => Self::MILLI | Self::TIME,
            b"us" | b"micros" | b"microseconds" => Self::MICRO,
            b"per" => Self::PER,
            b"average" | b"avg" | b"global" | b"mean" | b"total" => Self::BESIDE | Self::WHOLE,
            b"all" | b"avr" | b"combined" | b"cross" | b"cur" | b"curr" | b"current" | b"full"
            | b"joint" | b"final" | b"lm" | b"out" | b"overall" | b"reduced" | b"set" | b"sum"
            | b"tot" => Self::WHOLE,
            b"device" | b"in" | b"metrics" | b"perf" | b"performance" | b"speed"
            | b"throughput" => Self::BESIDE,
            [part @ .., b'l', b'o', b's', b's'] if may_be_glued(part) => Self::LOSS | Self::GLUED,
            _ => Self::default(),
        }
    }

    /// Whether one of `kinds` is among these.
    pub(super) fn any(self, kinds: Self) -> bool {
        self.0 & kinds.0 != 0
    }
}

impl BitOr for Kinds {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Whether "loss" behind `word` may be that of a part of the training. In other words it is another one.
fn may_be_glued(word: &[u8]) -> bool {
    let is_other = OTHER_LOSSES.iter().any(|other| other.as_bytes() == word);
    word.len() > 1 && word.iter().all(u8::is_ascii_lowercase) && !is_other
}

/// One word, as written in the name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    pub(super) kinds: Kinds,
}

impl<'a> Word<'a> {
    /// A number at the end is not part of a word: `loss1` is a loss.
    fn new(text: &'a str) -> Self {
        let bare = text.trim_end_matches(|c: char| c.is_ascii_digit());
        let text = if bare.is_empty() { text } else { bare };
        let mut small = [0; MAX_WORD_LEN];
        let kinds = small.get_mut(..text.len()).map_or(Kinds::default(), |small| {
            small.copy_from_slice(text.as_bytes());
            small.make_ascii_lowercase();
            Kinds::from_word(small)
        });
        Self { text, kinds }
    }

    /// Whether it is `word`, ignoring case.
    pub(super) fn is(self, word: &str) -> bool {
        self.text.eq_ignore_ascii_case(word)
    }
}

/// The words of a name.
pub(super) fn words(name: &str) -> Vec<Word<'_>> {
    let mut words = Vec::with_capacity(8);
    for run in name.split(|c: char| !c.is_alphanumeric()) {
        let mut rest = run;
        while !rest.is_empty() && words.len() < MAX_WORDS {
            let (word, next) = rest.split_at(first_hump(rest));
            words.push(Word::new(word));
            rest = next;
        }
    }
    words
}

/// Where the second word of a camel-case name begins: `val|Loss`, `NLL|Loss`.
fn first_hump(run: &str) -> usize {
    let mut before = None;
    let mut chars = run.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if let Some(last) = before.filter(|_| c.is_ascii_uppercase()) {
            let next_is_small = chars.peek().is_some_and(|(_, next)| next.is_ascii_lowercase());
            if !char::is_ascii_uppercase(&last) || next_is_small {
                return at;
            }
        }
        before = Some(c);
    }
    run.len()
}

/// The kinds of all words together.
pub(super) fn kinds(words: &[Word<'_>]) -> Kinds {
    words.iter().fold(Kinds::default(), |all, word| all | word.kinds)
}

/// Whether `words` are exactly those of `name`, separated by spaces.
pub(super) fn same(words: &[Word<'_>], name: &str) -> bool {
    let mut name = name.split(' ');
    words.iter().all(|word| name.next().is_some_and(|other| word.is(other)))
        && name.next().is_none()
}
