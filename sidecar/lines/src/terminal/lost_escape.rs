//! Colours whose escape byte was lost, as in text that was copied from a page: `[32m0.5[0m`.

use std::borrow::Cow;

/// The end of a colour.
const RESETS: [&str; 3] = ["[0m", "[39m", "[22m"];

/// How programs write the escape byte.
const WRITTEN: [&str; 6] = ["\\u001b", "\\u001B", "\\x1b", "\\033", "\\e", "^["];

/// The line without such colours. A time such as `[32m10s]` is none: a line with colours has the end of one, too, or
/// a text right behind one.
#[inline]
pub fn strip(line: &str) -> Cow<'_, str> {
    let mut brackets = memchr::memchr_iter(b'[', line.as_bytes());
    match brackets.find(|at| is_colour(line, *at)) {
        Some(first) => strip_from(line, first),
        None => Cow::Borrowed(line),
    }
}

/// Whether a colour is at `at`. Behind an escape byte that is written as text, it is not a lost one.
#[inline]
fn is_colour(line: &str, at: usize) -> bool {
    let Some((before, from)) = line.split_at_checked(at) else { return false };
    after_colour(from).is_some() && !WRITTEN.iter().any(|escape| before.ends_with(escape))
}

#[cold]
fn strip_from(line: &str, first: usize) -> Cow<'_, str> {
    let (before, colour) = line.split_at(first);
    let begins = || (before.is_empty() || before.ends_with(' ')) && begins_text(colour);
    if !RESETS.iter().any(|reset| has(line, reset)) && !begins() {
        return Cow::Borrowed(line);
    }
    let (mut out, mut from) = (String::with_capacity(line.len()), 0);
    for at in memchr::memchr_iter(b'[', line.as_bytes()) {
        if is_colour(line, at) {
            out.push_str(line.get(from..at).unwrap_or_default());
            let rest = line.get(at..).and_then(after_colour).unwrap_or_default();
            from = line.len() - rest.len();
        }
    }
    out.push_str(line.get(from..).unwrap_or_default());
    Cow::Owned(out)
}

/// Whether a line has the end of a colour, and not a time such as `[0m45s]`.
fn has(line: &str, reset: &str) -> bool {
    let mut after = line.match_indices(reset).filter_map(|(at, _)| line.get(at + reset.len()..));
    after.any(|after| !after.starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether a colour is before a text and not the unit of a time: `[1mvalid:`, but not `[3min]` and `[5ms]`.
fn begins_text(colour: &str) -> bool {
    let after = after_colour(colour).unwrap_or_default();
    let word = after.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    after.starts_with('[') || !["", "s", "in", "ins", "inutes"].contains(&word)
}

/// The text after a colour at the start of `text`.
#[inline]
fn after_colour(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('[')?;
    if !inside.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let is_part = |byte: &u8| byte.is_ascii_digit() || *byte == b';';
    let length = inside.bytes().take_while(|byte| is_part(byte)).count();
    let (codes, rest) = inside.split_at_checked(length)?;
    let rest = rest.strip_prefix('m')?;
    codes.split(';').all(is_code).then_some(rest)
}

/// Whether a text is the number of a colour or a style.
fn is_code(text: &str) -> bool {
    text.parse::<u8>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_stripped() {
        for (line, text) in [
            ("1   [36m0.5862[0m   [32m0.7741[0m", "1   0.5862   0.7741"),
            ("[1mvalid:", "valid:"),
            ("17:25:33 | [1mvalid:", "17:25:33 | valid:"),
            ("[32m[I 2026-01-01 10:00:00,000][0m Trial 1", "[I 2026-01-01 10:00:00,000] Trial 1"),
            ("[38;5;39mloss[0m 0.5 [3/4]", "loss 0.5 [3/4]"),
            ("a 44131[0m", "a 44131"),
            (r"\u001b[1ma [32m0.5[0m", r"\u001b[1ma 0.5"),
        ] {
            assert_eq!(strip(line), text);
        }
    }

    #[test]
    fn times_are_no_colours() {
        for line in [
            "3/4 [32m10s<1m, 2s/it]",
            "[1m20s] loss 0.5",
            "Epoch 3[0m45s] loss 0.5",
            "loss 0.5 [3min] [5ms]",
            "[5m] [3/4]",
            "[my_x4..][epoch: 0] [0/4]",
            r#"{"log": "\u001b[36m0.5862\u001b[0m"}"#,
            "[0/4] [",
            "[",
        ] {
            assert!(matches!(strip(line), Cow::Borrowed(_)), "{line}");
        }
    }
}
