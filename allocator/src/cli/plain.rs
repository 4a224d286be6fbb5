//! Text from elsewhere on a terminal: nothing of it is obeyed, all of it is seen.

use std::io::{self, Write};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The text with everything that a terminal would obey, hide or turn round written out: a name is
/// whatever somebody put into a label.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || unseen(c) {
            plain.extend(c.escape_unicode());
        } else {
            plain.push(c);
        }
    }
    plain
}

/// A JSON text with the same characters escaped inside its strings: it says the same.
pub(super) fn plain_json(text: &str) -> String {
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

/// Marks of direction, joiners, and what else takes no room, or ends a line.
const fn unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// The text, plain, in at most so many columns.
pub(super) fn fit(text: &str, width: usize) -> String {
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

/// The text, plain, in exactly so many columns, at their left.
pub(super) fn left(text: &str, width: usize) -> String {
    let cut = fit(text, width);
    let room = " ".repeat(width.saturating_sub(cut.width()));
    cut + &room
}

/// The same, at their right.
pub(super) fn right(text: &str, width: usize) -> String {
    let cut = fit(text, width);
    " ".repeat(width.saturating_sub(cut.width())) + &cut
}

/// Prints to standard output. Whoever reads may leave when it has read enough.
pub(super) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_that_it_would_obey() {
        assert_eq!(plain("vae-ü 学习"), "vae-ü 学习");
        assert_eq!(plain("a\x1b[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(plain("a\r\nb\t\x07\u{9b}31m"), "a\\u{d}\\u{a}b\\u{9}\\u{7}\\u{9b}31m");
        assert_eq!(plain("a\u{202e}b\u{200b}"), "a\\u{202e}b\\u{200b}");
    }

    #[test]
    fn json_says_the_same_with_nothing_in_it_that_is_obeyed() {
        let value = serde_json::json!({"a\u{9b}": "\x1b[2J\n\u{7f}\u{202e}\u{e0041}ü"});
        let text = plain_json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(text.contains(r#""a\u009b""#) && text.contains(r"\u202e\udb40\udc41ü"), "{text}");
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    #[test]
    fn a_text_takes_the_columns_that_it_is_given() {
        assert_eq!(left("vae", 5), "vae  ");
        assert_eq!(right("vae", 5), "  vae");
        assert_eq!(left("mnist-large", 5), "mnis…");
        // A wide letter takes two columns.
        assert_eq!(left("学学学", 4), "学… ");
        assert_eq!(fit("\x1b\x1b", 4), "\\u{…");
    }
}
