//! Prefixes that launchers and loggers put before a line.

mod known;
mod launchers;
mod loggers;

use known::KnownPrefixes;

/// A line without its prefixes, and the data from them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stripped<'a> {
    /// The program's own text, without surrounding white space.
    pub text: &'a str,
    /// The rank of the process that printed it. With `torchrun` it is the local rank.
    pub rank: Option<u32>,
    /// When it was printed, in Unix seconds, if the timestamp names its time zone.
    pub at: Option<f64>,
    /// The name of the process that printed it, such as `pid=1234` and `trainer-1`.
    pub process: Option<&'a str>,
}

/// Maximum number of prefixes; further ones count as text.
const MAX_PREFIXES: usize = 10;
/// Maximum length of a name in bytes.
const MAX_LEN: usize = 120;

/// Strips the prefixes of torchrun, MPI, Slurm, Ray, compose, syslog, klog, absl and loggers.
pub fn strip(line: &str) -> Stripped<'_> {
    Stripper::default().strip(line)
}

/// Strips the prefixes of a program's lines. Prefixes, and the first word of a line without one, are remembered,
/// because most lines begin alike.
#[derive(Debug, Default)]
pub struct Stripper {
    known: KnownPrefixes,
    /// The first word and the byte after it, and which bits they are of the first eight bytes.
    word: u64,
    mask: u64,
}

/// Bytes of a line that [`has_none`] looks at in any case.
const HEAD: usize = 4;

impl Stripper {
    /// As [`strip`].
    pub fn strip<'a>(&mut self, line: &'a str) -> Stripped<'a> {
        let text = line.trim_ascii();
        let start = text.as_bytes().first_chunk().map(|start| u64::from_le_bytes(*start));
        let is_known = start.is_some_and(|start| self.mask != 0 && start & self.mask == self.word);
        // No prefix begins with a brace.
        if is_known || text.starts_with('{') {
            return Stripped { text, ..Stripped::default() };
        }
        if !has_none(text.as_bytes()) {
            return self.strip_all(text);
        }
        let word = text.bytes().take(8).position(|byte| matches!(byte, b' ' | b':' | b'\t'));
        if let (Some(start), Some(length)) = (start, word) {
            let bits = 8 * (length + 1).max(HEAD);
            self.mask = u64::MAX >> (64 - bits);
            self.word = start & self.mask;
        }
        Stripped { text, ..Stripped::default() }
    }

    /// Strips the prefixes of a line that may have some.
    fn strip_all<'a>(&mut self, line: &'a str) -> Stripped<'a> {
        let (text, mut before) = self.known.strip(line).unwrap_or((line, Before::default()));
        let mut stripped = Stripped { text, ..Stripped::default() };
        if before.anything && has_no_further(text.as_bytes(), before) {
            return stripped;
        }
        let mut last = None;
        for _ in 0..MAX_PREFIXES {
            let text = stripped.text;
            let Some(rest) = one(&mut stripped, &mut before) else { break };
            stripped.text = rest.trim_ascii_start();
            last = Some(text);
        }
        if let Some(last) = last {
            self.known.learn(line, last, &stripped, before);
        }
        stripped
    }
}

/// Whether a line has no prefix for certain: its first word is one without a digit or a point. Fast, for most
/// lines of programs.
#[inline]
fn has_none(text: &[u8]) -> bool {
    let [first, second, _, fourth, ..] = text else { return false };
    let may_be_rank = launchers::may_be_rank(text);
    let may_be_date = matches!(fourth, b' ' | b',');
    if !first.is_ascii_alphabetic() || !second.is_ascii_lowercase() || may_be_rank || may_be_date {
        return false;
    }
    for byte in text.iter().take(MAX_LEN) {
        match byte {
            b' ' | b':' | b'\t' => return true,
            b'0'..=b'9' | b'|' | b'.' => return false,
            _ => {}
        }
    }
    true
}

/// Whether a text has no prefix for certain behind those that were stripped: it begins with a word that cannot be
/// the name of a logger.
#[inline]
fn has_no_further(text: &[u8], before: Before) -> bool {
    let [first, second, _, fourth, ..] = text else { return false };
    let may_be_date = matches!(fourth, b' ' | b',');
    let is_word = first.is_ascii_alphabetic() && !second.is_ascii_uppercase();
    if !is_word || may_be_date || launchers::may_be_rank(text) || before.stamp && !before.level {
        return false;
    }
    let is_letter = |byte: &&u8| byte.is_ascii_alphabetic();
    let length = text.iter().take(MAX_LEN).take_while(is_letter).count();
    // A mark there may part a name from the text.
    matches!(text.get(length..), Some([b' ', next, ..]) if next.is_ascii_alphanumeric())
}

impl Stripped<'_> {
    /// Takes the rank of one of several launchers. Of a local and a global rank, the global one is
    /// never lower.
    fn see_rank(&mut self, rank: Option<u32>) {
        self.rank = self.rank.max(rank);
    }
}

/// The prefixes that were stripped so far.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    stamp: bool,
    /// A date began with the name of a month or a day. A host and a process may follow it.
    named_date: bool,
    level: bool,
    /// A place in the code: `[train.py:42]`.
    place: bool,
    anything: bool,
}

impl Before {
    /// A date begins the prefix of a logger, and its level is still to come.
    fn see_stamp(&mut self) {
        self.stamp = true;
        self.level = false;
    }
}

/// Strips the first prefix. Returns the text after it, or `None` if there is none.
fn one<'a>(found: &mut Stripped<'a>, before: &mut Before) -> Option<&'a str> {
    let text = found.text;
    let (first, second) = match text.as_bytes() {
        [first, second, ..] => (*first, *second),
        _ => return None,
    };
    let rest = match first {
        b'{' => return None,
        b'[' => launchers::bracketed(found).or_else(|| loggers::bracketed(found, before)),
        b'(' => launchers::parenthesised(found, *before).or_else(|| loggers::place(text, *before)),
        b'0'..=b'9' => loggers::stamped(found, before)
            .or_else(|| launchers::labelled(found))
            .or_else(|| launchers::address(found))
            .or_else(|| loggers::indexed(text, *before)),
        b'A'..=b'Z' if second.is_ascii_uppercase() => {
            let rest = loggers::level(text).map(separator);
            before.level |= rest.is_some();
            rest.or_else(|| launchers::worded(found))
        }
        b'A'..=b'Z' if second.is_ascii_digit() => loggers::klog(text).map(separator),
        b'A'..=b'Z' | b'a'..=b'z' => loggers::named_stamp(found, before).or_else(|| {
            if !before.anything
                && let Some(rest) = loggers::module(text)
            {
                return Some(rest);
            }
            let may_be = launchers::may_be_rank(text.as_bytes()) || numbered_word(text).is_some();
            if !may_be {
                return None;
            }
            launchers::worded(found).or_else(|| launchers::host(found))
        }),
        _ => None,
    };
    let rest = rest.or_else(|| if before.anything { loggers::name(text, before) } else { None });
    before.anything |= rest.is_some();
    rest
}

/// The text after one separator.
fn separator(text: &str) -> &str {
    let text = text.trim_ascii_start();
    let length = match text.as_bytes() {
        // A row of a table begins and ends with a bar.
        [b'|', b' ', .., b'|'] => 0,
        [b'-' | b'|' | b':' | b',', b' ', ..] => 2,
        [b'>', b'>', b' ', ..] | [b':', b':', b' ', ..] => 3,
        [b':', ..] => 1,
        _ => 0,
    };
    text.get(length..).unwrap_or(text)
}

/// The first word of `text`, up to a space, a colon or a bar, and the rest. A word that is too long
/// or without a digit is none.
#[inline]
fn numbered_word(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    let bytes = bytes.get(..MAX_LEN).unwrap_or(bytes);
    let length = bytes.iter().position(|byte| matches!(byte, b' ' | b':' | b'|'))?;
    let (word, rest) = text.split_at_checked(length)?;
    word.bytes().any(|byte| byte.is_ascii_digit()).then_some((word, rest))
}

/// The digits at the start of `text` as a number, and the text after them.
fn number(text: &str) -> Option<(u32, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at_checked(length)?;
    Some((digits.parse().ok()?, rest))
}

#[cfg(test)]
mod tests;
