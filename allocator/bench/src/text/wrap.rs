//! Wraps text to lines that fit a terminal.

/// The largest width of a line, in columns.
pub(crate) const WIDTH: usize = 100;

/// Wraps the text to lines of at most `WIDTH`. The first line begins with `first`, the rest with `others`.
pub(crate) fn wrap(text: &str, first: &str, others: &str) -> String {
    paceline_api::plain::wrap(text, (first, others), WIDTH)
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

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
