//! The words of a name, however it is written: `val_loss`, `Loss/val`, `valLoss`.

use std::ops::BitOr;

/// More words than these are no name.
const MOST: usize = 32;
/// A longer word is of no kind.
const LONGEST: usize = 16;

/// What a word may say; one word may say several things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kinds(u32);

impl Kinds {
    pub(super) const LOSS: Self = Self(1);
    pub(super) const TRAIN: Self = Self(1 << 1);
    pub(super) const HELD_OUT: Self = Self(1 << 2);
    pub(super) const TEST: Self = Self(1 << 3);
    /// With it, a name that says "loss" is of something else, or of an extreme.
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
    /// Stands beside a time without making it the time of something else.
    pub(super) const BESIDE: Self = Self(1 << 14);

    /// Of a word in small letters.
    fn of(word: &[u8]) -> Self {
        match word {
            b"loss" | b"losses" | b"logloss" => Self::LOSS,
            b"train" | b"training" | b"trn" => Self::TRAIN,
            b"trainloss" => Self::TRAIN | Self::LOSS,
            b"val" | b"valid" | b"validation" | b"dev" | b"eval" | b"evaluation" | b"heldout" => {
                Self::HELD_OUT
            }
            b"valloss" | b"evalloss" => Self::HELD_OUT | Self::LOSS,
            b"test" | b"testing" | b"tst" => Self::TEST,
            b"testloss" => Self::TEST | Self::LOSS,
            b"acc" | b"accuracy" | b"best" | b"coef" | b"coeff" | b"coefficient" | b"count"
            | b"delta" | b"diff" | b"grad" | b"gradient" | b"gradnorm" | b"hp" | b"hparam"
            | b"hparams" | b"improvement" | b"lossless" | b"lr" | b"max" | b"min" | b"norm"
            | b"num" | b"packet" | b"patience" | b"ratio" | b"runtime" | b"scale" | b"scaler"
            | b"scaling" | b"std" | b"stddev" | b"target" | b"threshold" | b"tolerance"
            | b"var" | b"variance" | b"weight" | b"weights" => Self::NO_LOSS,
            b"ema" | b"ewma" | b"moving" | b"running" | b"smooth" | b"smoothed" => Self::RUNNING,
            b"batch" | b"iter" | b"iteration" | b"step" => Self::STEP,
            b"batches" | b"iterations" | b"iters" | b"steps" => Self::MANY_STEPS,
            b"epoch" => Self::EPOCH,
            b"duration" | b"elapsed" | b"latency" | b"timing" => Self::TIME,
            b"time" => Self::TIME | Self::NO_LOSS,
            b"s" | b"sec" | b"second" => Self::SECOND,
            b"seconds" | b"secs" => Self::SECOND | Self::TIME | Self::NO_LOSS,
            b"ms" | b"millis" | b"milliseconds" => Self::MILLI | Self::TIME,
            b"us" | b"micros" | b"microseconds" => Self::MICRO,
            b"per" => Self::PER,
            b"average" | b"avg" | b"device" | b"global" | b"mean" | b"metrics" | b"perf"
            | b"performance" => Self::BESIDE,
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

/// One word, as it stands in the name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'a> {
    text: &'a str,
    pub(super) kinds: Kinds,
}

impl<'a> Word<'a> {
    /// A number at the end is no part of a word: `loss1` is a loss.
    fn new(text: &'a str) -> Self {
        let bare = text.trim_end_matches(|c: char| c.is_ascii_digit());
        let text = if bare.is_empty() { text } else { bare };
        let mut small = [0; LONGEST];
        let kinds = small.get_mut(..text.len()).map_or(Kinds::default(), |small| {
            small.copy_from_slice(text.as_bytes());
            small.make_ascii_lowercase();
            Kinds::of(small)
        });
        Self { text, kinds }
    }

    /// Whether it is `word`, in large or small letters.
    pub(super) fn is(self, word: &str) -> bool {
        self.text.eq_ignore_ascii_case(word)
    }
}

/// The words of a name.
pub(super) fn words(name: &str) -> Vec<Word<'_>> {
    let mut words = Vec::with_capacity(8);
    for run in name.split(|c: char| !c.is_alphanumeric()) {
        let mut rest = run;
        while !rest.is_empty() && words.len() < MOST {
            let (word, next) = rest.split_at(first_hump(rest));
            words.push(Word::new(word));
            rest = next;
        }
    }
    words
}

/// Where the second hump of a camel begins: `val|Loss`, `NLL|Loss`.
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

/// What the words say together.
pub(super) fn kinds(words: &[Word<'_>]) -> Kinds {
    words.iter().fold(Kinds::default(), |all, word| all | word.kinds)
}

/// Whether `words` are exactly those of `name`, which has spaces between them.
pub(super) fn same(words: &[Word<'_>], name: &str) -> bool {
    let mut name = name.split(' ');
    words.iter().all(|word| name.next().is_some_and(|other| word.is(other)))
        && name.next().is_none()
}
