//! Wraps text to lines that fit a terminal.

use unicode_width::UnicodeWidthStr;

/// The largest width of a line, in columns.
pub(crate) const WIDTH: usize = 100;

/// Wraps the text to lines of at most `WIDTH`. The first line begins with `first`, the rest with `others`.
pub(crate) fn wrap(text: &str, first: &str, others: &str) -> String {
    let mut lines = String::new();
    let mut line = first.to_owned();
    let mut begun = false;
    for word in text.split_whitespace() {
        if begun && line.width() + 1 + word.width() > WIDTH {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_longer_than_the_page_and_no_word_is_lost() {
        let words = "ten letters ".repeat(30);
        let text = wrap(&words, "1. ", "   ");
        assert!(text.lines().all(|line| line.width() <= WIDTH), "{text}");
        assert!(
            text.lines()
                .skip(1)
                .all(|line| line.starts_with("   ten") || line.starts_with("   letters"))
        );
        assert!(text.trim_start_matches("1. ").split_whitespace().eq(words.split_whitespace()));
    }
}
