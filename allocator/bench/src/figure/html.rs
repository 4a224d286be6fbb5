//! Pages and text in HTML.

use plotters::style::RGBColor;

use super::palette::css;

const STYLE: &str = include_str!("page.css");

/// `text` with HTML's special characters escaped.
pub(crate) fn escape(text: &str) -> String {
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
pub(crate) fn each<T>(items: impl IntoIterator<Item = T>, markup: impl Fn(T) -> String) -> String {
    items.into_iter().map(markup).collect()
}

/// A page's beginning, up to its heading.
pub(crate) fn head(title: &str) -> String {
    let title = escape(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style></head><body>\n<h1>{title}</h1>\n"
    )
}

/// A picture on a page.
pub(crate) fn figure(svg: &str) -> String {
    format!("<figure>{svg}</figure>\n")
}

/// A legend: each colour with its name.
pub(crate) fn legend<'n>(entries: impl IntoIterator<Item = (RGBColor, &'n str)>) -> String {
    let entry = |(colour, name): (RGBColor, &str)| {
        format!("<li><i style=\"background:{}\"></i>{}</li>", css(colour), escape(name))
    };
    format!("<ul class=\"legend\">{}</ul>\n", each(entries, entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_are_escaped() {
        assert_eq!(escape("<a href='x'>&\"ü"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;ü");
    }
}
