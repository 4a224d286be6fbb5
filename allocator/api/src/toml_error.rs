//! Errors of TOML files, in one line each.

use paceline_policy::names::in_plain_words;

/// The line of `error` in `text`, from 1, and what is wrong there. For an unknown key, the message
/// names the most similar known one.
pub fn explain(text: &str, error: &toml::de::Error) -> (usize, String) {
    let start = error.span().unwrap_or_default().start;
    (line_at(text, start), in_plain_words(error.message()))
}

/// The line, from 1, in which the byte `at` of `text` lies.
pub fn line_at(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::explain;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the errors are looked at")]
    struct Table {
        speed: Option<f64>,
        weight: Option<f64>,
    }

    fn explained(text: &str) -> (usize, String) {
        explain(text, &toml::from_str::<Table>(text).unwrap_err())
    }

    #[test]
    fn unknown_key_is_explained_with_the_most_similar_one() {
        let said = "unknown field `sped`, expected `speed` or `weight`; did you mean \"speed\"?";
        assert_eq!(explained("\n\nsped = 1"), (3, said.to_owned()));
        let (_, said) = explained("colour = 1");
        assert_eq!(said, "unknown field `colour`, expected `speed` or `weight`");
    }

    #[test]
    fn line_is_that_of_the_value() {
        assert_eq!(explained("weight = 1\nspeed = 'fast'").0, 2);
        assert_eq!(explained("weight = 1\nspeed = ").0, 2);
    }
}
