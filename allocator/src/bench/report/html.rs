//! Putting text into HTML.

/// `text` with the characters that mean something in HTML replaced.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(c),
        }
    }
    escaped
}

/// The markup of each of `items`, one after the other.
pub(super) fn each<T>(items: impl IntoIterator<Item = T>, markup: impl Fn(T) -> String) -> String {
    items.into_iter().map(markup).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_html_knows_is_left() {
        assert_eq!(escape("<a href='x'>&\"ü"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;ü");
    }
}
