//! JSON objects, and Python dicts as `print` writes them.
//!
//! The dicts of a program mostly have the same keys and differ only in their values. The text
//! between the values is remembered, so that a similar dict is compared and not parsed.

use paceline_lines::bytes::Literal;
use paceline_lines::scan;

use super::keys::{Field, Keys};

/// A value of a dict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    /// A number, also in quotes or in `tensor(…)`.
    Number(f64),
    /// A string that is not a number, with its escapes unchanged.
    Text(&'a str),
    /// `null`, or a boolean.
    Word(&'a str),
    /// A list, with its brackets.
    List(&'a str),
    /// A dict, or a call.
    Other,
}

/// Receives the values of a dict.
pub(super) trait Take<'a> {
    /// Whether the value of a key without a general meaning is wanted.
    fn wants(&self, key: &str) -> bool;

    /// Takes the value under `key`. In a nested dict, `key` is prefixed by the outer key and a
    /// slash.
    fn take(&mut self, field: Field, key: &str, value: Value<'a>);

    /// Discards all values taken so far.
    fn clear(&mut self);
}

/// Reads dicts.
#[derive(Debug, Default)]
pub(super) struct Dicts {
    keys: Keys,
    /// The parts of a recent dict, and the text after its last value.
    parts: Vec<Part>,
    tail: String,
    /// Number of different dicts since then.
    misses: u32,
}

#[derive(Clone, Debug)]
struct Part {
    /// The text between the previous value and this one.
    before: Literal<String>,
    key: String,
    field: Field,
    wanted: bool,
}

/// Maximum nesting depth.
const MAX_DEPTH: usize = 64;
/// Maximum number of values of a remembered dict.
const MAX_ENTRIES: usize = 64;
/// After so many different dicts in a row, the remembered one is replaced.
const MAX_MISSES: u32 = 4;

impl Dicts {
    /// The known keys.
    pub(super) fn keys(&mut self) -> &mut Keys {
        &mut self.keys
    }

    /// Passes the values of the dict at the start of `text` to `to`, including those of nested
    /// dicts. Returns the text after the dict; `None` if it is malformed.
    pub(super) fn walk<'a>(&mut self, text: &'a str, to: &mut impl Take<'a>) -> Option<&'a str> {
        if !self.parts.is_empty() {
            if let Some(rest) = self.alike(text, to) {
                self.misses = 0;
                return Some(rest);
            }
            to.clear();
        }
        self.misses += 1;
        let learn = self.parts.is_empty() || self.misses >= MAX_MISSES;
        if learn {
            self.parts.clear();
            self.misses = 0;
        }
        let mut walk =
            Walk { text, keys: &mut self.keys, parts: Vec::new(), learn, last: text, to };
        let rest = walk.entries(text.as_bytes(), None)?;
        let rest = Bytes { text, rest }.as_str();
        let Walk { parts, last, .. } = walk;
        if learn && parts.len() <= MAX_ENTRIES {
            self.parts = parts;
            self.tail.clear();
            self.tail.push_str(last.get(..last.len() - rest.len()).unwrap_or_default());
        }
        Some(rest)
    }

    /// Reads a dict with the same text between the values as the remembered one. Returns the text
    /// after it.
    fn alike<'a>(&self, text: &'a str, to: &mut impl Take<'a>) -> Option<&'a str> {
        let mut rest = text.as_bytes();
        for part in &self.parts {
            let length = part.before.text().len();
            rest = rest.get(length..).filter(|_| part.before.begins(rest))?;
            rest = if part.wanted {
                let (value, after) = value(Bytes { text, rest })?;
                to.take(part.field, &part.key, value);
                after
            } else {
                pass(rest)?
            };
        }
        let rest = rest.strip_prefix(self.tail.as_bytes())?;
        Some(Bytes { text, rest }.as_str())
    }
}

/// The rest of a text.
#[derive(Clone, Copy, Debug)]
struct Bytes<'a> {
    text: &'a str,
    rest: &'a [u8],
}

impl<'a> Bytes<'a> {
    fn as_str(self) -> &'a str {
        self.text.get(self.text.len() - self.rest.len()..).unwrap_or_default()
    }

    /// The text before `end`, which is a later rest of the same text.
    fn up_to(self, end: &[u8]) -> &'a str {
        let start = self.text.len() - self.rest.len();
        self.text.get(start..self.text.len() - end.len()).unwrap_or_default()
    }
}

struct Walk<'a, 'w, T> {
    text: &'a str,
    keys: &'w mut Keys,
    parts: Vec<Part>,
    learn: bool,
    /// The text after the last value.
    last: &'a str,
    to: &'w mut T,
}

impl<'a, T: Take<'a>> Walk<'a, '_, T> {
    fn entries(&mut self, rest: &'a [u8], around: Option<&str>) -> Option<&'a [u8]> {
        let mut rest = rest.strip_prefix(b"{")?;
        loop {
            let quote = match space(rest) {
                // Python allows a comma after the last entry.
                [b'}', after @ ..] => return Some(after),
                [quote @ (b'"' | b'\''), after @ ..] => {
                    rest = after;
                    *quote
                }
                _ => return None,
            };
            let end = end_of_string(rest, quote)?;
            let key = Bytes { text: self.text, rest }.up_to(end);
            rest = match space(end.get(1..)?) {
                [b':', after @ ..] => space(after),
                _ => return None,
            };
            rest = match around {
                None if rest.starts_with(b"{") => self.entries(rest, Some(key))?,
                None => self.entry(rest, key)?,
                Some(around) => self.entry(rest, &format!("{around}/{key}"))?,
            };
            rest = match space(rest) {
                [b',', after @ ..] | after @ [b'}', ..] => after,
                _ => return None,
            };
        }
    }

    fn entry(&mut self, rest: &'a [u8], key: &str) -> Option<&'a [u8]> {
        let at = Bytes { text: self.text, rest };
        let field = self.keys.field(key);
        let wanted = field != Field::Other || self.to.wants(key);
        let after = if wanted {
            let (value, after) = value(at)?;
            self.to.take(field, key, value);
            after
        } else {
            pass(rest)?
        };
        if self.learn && self.parts.len() <= MAX_ENTRIES {
            let before = self.last.get(..self.last.len() - rest.len()).unwrap_or_default();
            let (before, key) = (Literal::new(before.to_owned()), key.to_owned());
            self.parts.push(Part { before, key, field, wanted });
        }
        self.last = Bytes { text: self.text, rest: after }.as_str();
        Some(after)
    }
}

fn space(rest: &[u8]) -> &[u8] {
    match rest {
        [first, ..] if *first > b' ' => rest,
        [b' ', after @ ..] if after.first().is_some_and(|byte| *byte > b' ') => after,
        _ => rest.trim_ascii_start(),
    }
}

fn value(at: Bytes<'_>) -> Option<(Value<'_>, &[u8])> {
    let Bytes { text, rest } = at;
    match rest {
        [quote @ (b'"' | b'\''), inside @ ..] => {
            let end = end_of_string(inside, *quote)?;
            let string = Bytes { text, rest: inside }.up_to(end);
            let value = scan::whole(string).map_or(Value::Text(string), Value::Number);
            Some((value, end.get(1..)?))
        }
        [b'[', ..] => {
            let after = skip(rest)?;
            Some((Value::List(Bytes { text, rest }.up_to(after)), after))
        }
        [b'{' | b'(', ..] => Some((Value::Other, skip(rest)?)),
        [b'a'..=b'z' | b'A'..=b'Z' | b'_', ..] => {
            if let Some((number, after)) = scan::number(at.as_str()) {
                return Some((Value::Number(number), after.as_bytes()));
            }
            let is_of_word = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_');
            let word = rest;
            let rest = rest.get(rest.iter().take_while(is_of_word).count()..)?;
            let [b'(', inside @ ..] = rest else {
                let word = Bytes { text, rest: word }.up_to(rest);
                return Some((Value::Word(word), rest));
            };
            let number = scan::value(Bytes { text, rest: inside }.as_str());
            let value = number.map_or(Value::Other, |(number, _)| Value::Number(number));
            Some((value, skip(rest)?))
        }
        _ => {
            let (number, after) = scan::number(at.as_str())?;
            Some((Value::Number(number), after.as_bytes()))
        }
    }
}

/// Skips an unwanted value and returns the text after it.
fn pass(rest: &[u8]) -> Option<&[u8]> {
    match rest {
        [quote @ (b'"' | b'\''), inside @ ..] => end_of_string(inside, *quote)?.get(1..),
        [b'[' | b'{' | b'(', ..] => skip(rest),
        [b',' | b'}' | b':', ..] => None,
        _ => {
            let ends = |b: &u8| ENDS.get(usize::from(*b)) == Some(&true);
            let rest = rest.get(rest.iter().position(ends)?..)?;
            if rest.starts_with(b"(") { skip(rest) } else { Some(rest) }
        }
    }
}

/// The bytes that end a number or a word.
const ENDS: [bool; 256] = {
    let mut ends = [false; 256];
    let mut at = 0;
    while at < ends.len() {
        #[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "below 256")]
        let byte = at as u8;
        #[expect(clippy::indexing_slicing, reason = "computed by the compiler")]
        {
            ends[at] = matches!(byte, b',' | b'}' | b' ' | b'(' | b'"' | b'\'');
        }
        at += 1;
    }
    ends
};

/// Skips a string. Returns the rest from its closing quote on.
fn end_of_string(inside: &[u8], quote: u8) -> Option<&[u8]> {
    let mut rest = inside;
    loop {
        let length = rest.iter().position(|byte| *byte == quote || *byte == b'\\')?;
        rest = rest.get(length..)?;
        if rest.first() == Some(&quote) {
            return Some(rest);
        }
        rest = rest.get(2..)?;
    }
}

/// Skips a list, dict or argument list and returns the text after it.
fn skip(rest: &[u8]) -> Option<&[u8]> {
    let mut rest = rest;
    let mut depth = 0_usize;
    loop {
        let (first, after) = rest.split_first()?;
        rest = after;
        match first {
            b'"' | b'\'' => rest = end_of_string(after, *first)?.get(1..)?,
            b'[' | b'{' | b'(' if depth < MAX_DEPTH => depth += 1,
            b'[' | b'{' | b'(' => return None,
            b']' | b'}' | b')' => {
                depth -= 1;
                if depth == 0 {
                    return Some(rest);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
