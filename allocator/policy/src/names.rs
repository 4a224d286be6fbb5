//! Errors of users' files in plain words, with suggestions for mistyped names.

/// The least Jaro-Winkler similarity of two names for a suggestion: one or two typos, not another word.
const ALIKE: f64 = 0.75;

/// A suggestion for the unknown `name`, to append to an error message: the most similar of `known`, or
/// an empty text if none is similar.
///
/// ```
/// use paceline_policy::names::did_you_mean;
///
/// assert_eq!(did_you_mean("alhpa", ["alpha", "beta"]), r#"; did you mean "alpha"?"#);
/// assert_eq!(did_you_mean("speed", ["alpha", "beta"]), "");
/// ```
pub fn did_you_mean<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    let near = known.into_iter().map(|known| (strsim::jaro_winkler(name, known), known));
    match near.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((likeness, known)) if likeness > ALIKE => format!("; did you mean {known:?}?"),
        _ => String::new(),
    }
}

/// A message of serde about a user's file, in one line: without the names of Rust's types, and with the
/// most similar known key for an unknown one.
///
/// ```
/// use paceline_policy::names::in_plain_words;
///
/// assert_eq!(
///     in_plain_words("invalid type: string \"b\", expected f64"),
///     "invalid type: string \"b\", expected a number"
/// );
/// ```
pub fn in_plain_words(message: &str) -> String {
    let message = message.lines().collect::<Vec<_>>().join(", ");
    let hint = unknown_key(&message).unwrap_or_default();
    match message.rsplit_once(", expected ") {
        Some((found, expected)) => format!("{found}, expected {}{hint}", plain_type(expected)),
        None => message,
    }
}

/// The hint that follows serde's message about an unknown key: "unknown field `key`, expected one
/// of `this`, `that`".
fn unknown_key(message: &str) -> Option<String> {
    let mut words = message.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2);
    let key = words.next()?;
    Some(did_you_mean(key, words))
}

fn plain_type(expected: &str) -> &str {
    match expected {
        "f32" | "f64" => "a number",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "a nonzero u32" | "a nonzero u64" | "a nonzero usize" => "a whole number above 0",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "a table",
        _ if expected.starts_with("struct ") => "a table",
        _ => expected,
    }
}

#[cfg(test)]
mod tests {
    use super::{did_you_mean, in_plain_words};

    #[test]
    fn rust_types_are_put_into_plain_words() {
        for (expected, plain) in [
            ("u64", "a whole number from 0"),
            ("a boolean", "true or false"),
            ("struct Arrivals", "a table"),
            ("one of `a`, `b`", "one of `a`, `b`"),
        ] {
            let said = in_plain_words(&format!("invalid type: map, expected {expected}"));
            assert_eq!(said, format!("invalid type: map, expected {plain}"));
        }
        assert_eq!(in_plain_words("missing\nvalue"), "missing, value");
    }

    #[test]
    fn typo_is_recognised_and_another_word_is_not() {
        let known = ["max_decrease", "max_increase", "enforcement", "starve_after"];
        for (slip, meant) in [
            ("max_decrase", "max_decrease"),
            ("max-increase", "max_increase"),
            ("enforcment", "enforcement"),
            ("starveafter", "starve_after"),
        ] {
            assert_eq!(did_you_mean(slip, known), format!("; did you mean {meant:?}?"));
        }
        assert_eq!(did_you_mean("speed", known), "");
        assert_eq!(did_you_mean("", known), "");
        assert_eq!(did_you_mean("speed", []), "");
    }
}
