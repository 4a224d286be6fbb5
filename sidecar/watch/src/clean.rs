//! Text of others, made safe for a terminal, and cut.
//!
//! Names, paths and errors come from jobs, which may send anything.

use serde_json::Value;

/// The most characters of a text: a long path.
const MAX_CHARS: usize = 400;
/// The most entries of a list: ranks and sources.
const MAX_ENTRIES: usize = 512;

/// The text with every character replaced that a terminal would obey, hide or reorder, cut to `most`
/// characters. No more of it is looked at than is kept.
pub(crate) fn text(text: &str, most: usize) -> String {
    let mut kept: String =
        text.chars().take(most).map(|c| if is_hidden(c) { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(most).is_some() {
        kept.pop();
        kept.push('…');
    }
    kept
}

/// Cleans all texts of a value, and cuts its lists.
pub(crate) fn json(value: &mut Value) {
    match value {
        Value::String(old) => *old = text(old, MAX_CHARS),
        Value::Array(entries) => {
            entries.truncate(MAX_ENTRIES);
            entries.iter_mut().for_each(json);
        }
        Value::Object(fields) => fields.values_mut().for_each(json),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Control characters, direction marks, joiners, and others that have no width or end a line.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn terminal_commands_and_long_texts_are_replaced() {
        assert_eq!(text("vae ü 学习", 20), "vae ü 学习");
        assert_eq!(text("a\x1b[2J\u{202e}b\n", 20), "a\u{fffd}[2J\u{fffd}b\u{fffd}");
        assert_eq!(text("abcd", 3), "ab…");
        let mut value = serde_json::json!({"a": ["\x07", {"b": "x".repeat(1000)}]});
        json(&mut value);
        assert_eq!(value["a"][0], "\u{fffd}");
        assert_eq!(value["a"][1]["b"].as_str().unwrap().chars().count(), MAX_CHARS);
    }

    proptest! {
        #[test]
        fn any_text_is_cut_and_harmless(given in any::<String>(), most in 0..40_usize) {
            let clean = text(&given, most);
            prop_assert!(clean.chars().count() <= most.max(1) && !clean.chars().any(is_hidden));
        }
    }
}
