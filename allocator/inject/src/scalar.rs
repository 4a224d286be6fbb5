//! Scalars: what readers of YAML 1.1 and 1.2 take for something other than a string.

/// Words that some reader takes for a boolean or for null. Kubernetes reads YAML 1.1.
const WORDS: &[&str] =
    &["true", "false", "yes", "no", "on", "off", "y", "n", "null", "~", "=", "<<", ".inf", ".nan"];

/// Whether an unquoted scalar is null.
pub(crate) fn is_null(text: &str) -> bool {
    ["", "~", "null", "Null", "NULL"].contains(&text)
}

/// Whether every reader takes an unquoted scalar for a string.
pub(crate) fn is_plain_text(text: &str) -> bool {
    !text.is_empty()
        && !WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
        && !is_like_number(text)
}

/// Whether some reader might take the scalar for a number, a date or a time.
fn is_like_number(text: &str) -> bool {
    let digits = text.trim_start_matches(['-', '+', '.']);
    let is_infinite = ["inf", "nan"].iter().any(|word| digits.eq_ignore_ascii_case(word));
    let begins = digits.starts_with(|c: char| c.is_ascii_digit());
    let goes_on = |c: char| c.is_ascii_hexdigit() || "._xob:-+TZtz ".contains(c);
    is_infinite || (begins && digits.chars().all(goes_on))
}

/// A string in the form of YAML: unquoted if that is the same for every reader.
pub(crate) fn written(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/_.:=@+-".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric() || "/_".contains(c))
        || (text.starts_with("--") && text != "---");
    if begins && text.chars().all(plain) && !text.ends_with(':') && is_plain_text(text) {
        text.to_owned()
    } else {
        quoted(text)
    }
}

/// A string in the form of JSON, and so also of YAML.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            // Readers of YAML break lines at some of these.
            c if c.is_control() || ['\u{2028}', '\u{2029}', '\u{feff}'].contains(&c) => {
                let code = format!("\\u{:04x}", u32::from(c));
                quoted.push_str(&code);
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalar_that_a_reader_takes_for_another_type_is_not_text() {
        let others = [
            "true",
            "Yes",
            "on",
            "OFF",
            "n",
            "null",
            "~",
            "",
            "1",
            "-0.3",
            "+1",
            ".5",
            "1e3",
            "1_000",
            "0644",
            "0o17",
            "0x1F",
            "12:30:45",
            "2026-11-27",
            "2026-11-27T12:00:00Z",
            ".inf",
            "-.INF",
        ];
        for other in others {
            assert!(!is_plain_text(other), "{other}");
            assert!(written(other).starts_with('"'), "{other}");
        }
        for text in
            ["10m", "16Mi", "train", "/logs", "--", "--acceptable=0.3", "paceline/sidecar:0.1.0"]
        {
            assert!(is_plain_text(text), "{text}");
            assert_eq!(written(text), text);
        }
    }

    #[test]
    fn quotes_and_control_characters_are_escaped() {
        assert_eq!(quoted("a\"b\\c\n\u{1}\u{2028}ü"), r#""a\"b\\c\n\u0001\u2028ü""#);
        for text in ["-", "---", "a: b", "a #b", "[a", "a:", "*a", "&a", "!a", "@a", "%a"] {
            assert!(written(text).starts_with('"'), "{text}");
        }
    }
}
