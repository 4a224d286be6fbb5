//! The prefixes of earlier lines. A program's lines mostly begin alike but for the digits of a time, so a
//! prefix that differs from an earlier one in its digits alone is not parsed again.

use super::{Before, MAX_LEN, Stripped};

/// Number of bytes that are compared at once.
const WORD: usize = 8;
/// Maximum number of words of a prefix that is remembered.
const MAX_WORDS: usize = MAX_LEN / WORD;
/// Number of prefixes that are remembered: a program has several loggers and levels.
const MAX_KNOWN: usize = 8;

/// Prefixes of earlier lines.
#[derive(Debug, Default)]
pub(super) struct KnownPrefixes {
    all: Vec<Known>,
    /// The index of the one that is replaced next.
    oldest: usize,
}

/// A prefix whose digits do not matter.
#[derive(Debug)]
struct Known {
    words: Vec<Word>,
    length: usize,
    /// How the text behind it begins.
    start: u8,
    before: Before,
}

/// Some bytes of a prefix. Those behind its end are zero in all three.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    /// The bytes other than digits.
    text: u64,
    /// All bits of these.
    is_text: u64,
    /// All bits of the digits.
    is_digit: u64,
}

impl KnownPrefixes {
    /// The prefixes of `text`, if an earlier line began with the same, and the text after them. None of them names a
    /// process or a time with its zone. The text may have further prefixes.
    pub(super) fn strip<'a>(&self, text: &'a str) -> Option<(&'a str, Before)> {
        let (words, _) = text.as_bytes().as_chunks();
        let known = self.all.iter().find(|known| known.begins(words))?;
        let rest = text.get(known.length..)?;
        let is_alike = start(rest) == Some(known.start) && !ends_row(text);
        is_alike.then_some((rest, known.before))
    }

    /// Remembers the prefixes of `line`, which were parsed to `stripped` and `before`. `last` is the
    /// text from the last prefix on.
    pub(super) fn learn(
        &mut self,
        line: &str,
        last: &str,
        stripped: &Stripped<'_>,
        before: Before,
    ) {
        let Stripped { text, rank, at, process } = *stripped;
        let length = line.len() - text.len();
        let says_more = rank.is_some() || at.is_some() || process.is_some() || before.named_date;
        if says_more || !(1..=WORD * MAX_WORDS).contains(&length) || ends_row(line) {
            return;
        }
        let last = last.get(..last.len() - text.len());
        let (Some(start), Some(prefix), Some(last)) = (start(text), line.get(..length), last)
        else {
            return;
        };
        // Behind `INFO:` alone, a name and a further colon would belong to the prefix.
        let is_whole = prefix.ends_with([' ', '\t', ']']) || last.matches(':').count() == 2;
        if !is_whole {
            return;
        }
        let words = prefix.as_bytes().chunks(WORD).map(Word::new).collect();
        let known = Known { words, length, start, before };
        match self.all.get_mut(self.oldest) {
            Some(oldest) => *oldest = known,
            None => self.all.push(known),
        }
        self.oldest = (self.oldest + 1) % MAX_KNOWN;
    }
}

impl Known {
    /// Whether a line of these words begins with it.
    #[inline]
    fn begins(&self, line: &[[u8; WORD]]) -> bool {
        line.len() >= self.words.len()
            && self.words.iter().zip(line).all(|(word, bytes)| word.is_alike(*bytes))
    }
}

impl Word {
    fn new(bytes: &[u8]) -> Self {
        let mut word = Self::default();
        for (at, byte) in bytes.iter().enumerate() {
            let bits = 0xff << (8 * at);
            if byte.is_ascii_digit() {
                word.is_digit |= bits;
            } else {
                word.is_text |= bits;
                word.text |= u64::from(*byte) << (8 * at);
            }
        }
        word
    }

    /// Whether `bytes` differ from it in the digits at most.
    #[inline]
    fn is_alike(self, bytes: [u8; WORD]) -> bool {
        const ALL: u64 = u64::MAX / 0xff;
        let bytes = u64::from_le_bytes(bytes);
        // A digit is 0x30 plus 0 to 9. With 6, a higher one carries into the upper half of the byte.
        let upper = (bytes ^ (0x30 * ALL)) | ((bytes & (0x0f * ALL)) + 0x06 * ALL);
        let not_digits = upper & (0xf0 * ALL) & self.is_digit;
        (bytes & self.is_text) ^ self.text | not_digits == 0
    }
}

/// How the text behind a prefix begins: with a letter, or with a certain mark. A number or another mark may decide
/// where the prefix ends.
#[inline]
fn start(text: &str) -> Option<u8> {
    match text.as_bytes().first()? {
        b'A'..=b'Z' | b'a'..=b'z' => Some(b'a'),
        mark @ (b'"' | b'\'' | b'(' | b'[' | b'{' | b'<' | b'=' | b'*' | b'#') => Some(*mark),
        _ => None,
    }
}

/// Whether the line may be a row of a table, which may have its first bar behind a prefix.
#[inline]
fn ends_row(line: &str) -> bool {
    line.as_bytes().last() == Some(&b'|')
}
