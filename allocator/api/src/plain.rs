//! Untrusted text on a terminal: control characters are escaped, so that all of it is visible and
//! none of it has an effect.

use std::io::{self, Write};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The text with every character escaped that a terminal would obey, hide or reorder. Names come
/// from labels, which may hold anything.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            plain.extend(c.escape_unicode());
        } else {
            plain.push(c);
        }
    }
    plain
}

/// The most characters of a name that a job or a container gives.
pub const MAX_NAME: usize = 64;
/// The most characters of a message that a job gives.
pub const MAX_MESSAGE: usize = 200;
/// The most characters of a path that a job gives.
pub const MAX_PATH: usize = 1024;

/// A foreign name: plain, and cut to [`MAX_NAME`] characters.
pub fn name(text: &str) -> String {
    cut(text, MAX_NAME)
}

/// A foreign message: plain, and cut to [`MAX_MESSAGE`] characters.
pub fn message(text: &str) -> String {
    cut(text, MAX_MESSAGE)
}

/// A foreign path: plain, and cut to [`MAX_PATH`] characters.
pub fn path(text: &str) -> String {
    cut(text, MAX_PATH)
}

/// Whether [`plain`] leaves the text as it is, and it has at most `most` characters.
pub fn is_plain(text: &str, most: usize) -> bool {
    text.chars().nth(most).is_none() && !text.chars().any(is_hidden)
}

/// The text, plain, and cut to `most` characters, of which the last one is then an ellipsis. No more
/// of a long text is looked at than is kept.
pub fn cut(text: &str, most: usize) -> String {
    let enough = text.char_indices().nth(most + 1).map_or(text.len(), |(at, _)| at);
    let mut plain = plain(text.get(..enough).unwrap_or(text));
    if plain.chars().nth(most).is_some() {
        plain = plain.chars().take(most.saturating_sub(1)).chain(['…']).collect();
    }
    plain
}

/// A JSON text with the same characters escaped inside its strings; its meaning is unchanged.
pub fn plain_json(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        // An end of line stands between values; in a string it is escaped already.
        if (c.is_control() && c != '\n') || unseen(c) {
            plain.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            plain.push(c);
        }
    }
    plain
}

fn is_hidden(c: char) -> bool {
    c.is_control() || unseen(c)
}

/// Direction marks, joiners and other characters that have no width or end a line.
const fn unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// The text, plain, cut to at most `width` columns.
pub fn fit(text: &str, width: usize) -> String {
    let plain = plain(text);
    if plain.width() <= width {
        return plain;
    }
    let (mut cut, mut used) = (String::new(), 0);
    for c in plain.chars() {
        used += c.width().unwrap_or(0);
        if used >= width {
            break;
        }
        cut.push(c);
    }
    cut.push('…');
    cut
}

/// The text in lines of at most `width` columns. The first line begins with the first of `starts`, the others
/// with the second.
pub fn wrap(text: &str, starts: (&str, &str), width: usize) -> String {
    let (first, others) = starts;
    let room = width.saturating_sub(first.width().max(others.width())).max(1);
    let mut lines = String::new();
    let mut line = first.to_owned();
    let mut begun = false;
    for word in text.split_whitespace().flat_map(|word| parts(word, room)) {
        if begun && line.width() + 1 + word.width() > width {
            lines += &line;
            lines.push('\n');
            others.clone_into(&mut line);
            begun = false;
        }
        if begun {
            line.push(' ');
        }
        line += word;
        begun = true;
    }
    lines + &line + "\n"
}

/// A word in parts of at most `width` columns; a single character may be wider.
fn parts(mut word: &str, width: usize) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let mut used = 0;
        let end = word.char_indices().find_map(|(at, c)| {
            used += c.width().unwrap_or(0);
            (at > 0 && used > width).then_some(at)
        });
        let (part, rest) = word.split_at(end.unwrap_or(word.len()));
        word = rest;
        (!part.is_empty()).then_some(part)
    })
}

/// The text, plain, in exactly `width` columns, aligned left.
pub fn left(text: &str, width: usize) -> String {
    let cut = fit(text, width);
    let room = " ".repeat(width.saturating_sub(cut.width()));
    cut + &room
}

/// The same, aligned right.
pub fn right(text: &str, width: usize) -> String {
    let cut = fit(text, width);
    " ".repeat(width.saturating_sub(cut.width())) + &cut
}

/// Prints to standard output. A reader that closes the pipe early is not an error.
pub fn print(text: &str) -> io::Result<()> {
    print_if_read(text).map(|_| ())
}

/// The same; returns whether there is still a reader, for what goes on to print.
pub fn print_if_read(text: &str) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        printed => printed.map(|()| true).map_err(|error| unprinted(&error)),
    }
}

/// The error of standard output, which the error of the system does not name.
pub fn unprinted(error: &io::Error) -> io::Error {
    let why = format!("cannot write to standard output: {error}; send it to another place");
    io::Error::new(error.kind(), why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_fit_and_lose_nothing() {
        let text = format!("see {} and {}", "x".repeat(45), "学".repeat(30));
        let wrapped = wrap(&text, ("- ", "  "), 20);
        assert!(wrapped.lines().all(|line| line.width() <= 20), "{wrapped}");
        let all: String = wrapped.split_whitespace().skip(1).collect();
        assert_eq!(all, text.split_whitespace().collect::<String>());
        assert_eq!(wrap("", ("", ""), 20), "\n");
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(plain("vae-ü 学习"), "vae-ü 学习");
        assert_eq!(plain("a\x1b[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(plain("a\r\nb\t\x07\u{9b}31m"), "a\\u{d}\\u{a}b\\u{9}\\u{7}\\u{9b}31m");
        assert_eq!(plain("a\u{202e}b\u{200b}"), "a\\u{202e}b\\u{200b}");
    }

    #[test]
    fn long_text_is_cut_with_an_ellipsis() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "ab…");
        assert_eq!(cut("a\nb", 20), "a\\u{a}b");
        assert_eq!(cut("a\nb", 4), "a\\u…");
        assert_eq!(cut(&"学".repeat(100_000), MAX_NAME).chars().count(), MAX_NAME);
        assert_eq!(cut("", 0), "");
        let again = cut(&cut("a\n\n\n\nb", 12), 12);
        assert_eq!(again, cut("a\n\n\n\nb", 12), "it is cut once");
        assert!(is_plain("vae-ü 学习", 8) && !is_plain("abc", 2) && !is_plain("a\u{202e}", 9));
    }

    #[test]
    fn json_with_escaped_characters_has_the_same_value() {
        let value = serde_json::json!({"a\u{9b}": "\x1b[2J\n\u{7f}\u{202e}\u{e0041}ü"});
        let text = plain_json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(text.contains(r#""a\u009b""#) && text.contains(r"\u202e\udb40\udc41ü"), "{text}");
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    #[test]
    fn text_takes_exactly_its_columns() {
        assert_eq!(left("vae", 5), "vae  ");
        assert_eq!(right("vae", 5), "  vae");
        assert_eq!(left("mnist-large", 5), "mnis…");
        // A wide letter takes two columns.
        assert_eq!(left("学学学", 4), "学… ");
        assert_eq!(fit("\x1b\x1b", 4), "\\u{…");
    }
}
