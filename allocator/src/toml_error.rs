//! Errors of TOML files, in one line each.

use paceline_policy::names::did_you_mean;

/// The line, from 1, on which `error` lies in `text`, and what is wrong there: a key that is not
/// known with the nearest of those that are.
pub(crate) fn explain(text: &str, error: &toml::de::Error) -> (usize, String) {
    let start = error.span().unwrap_or_default().start;
    let message = error.message().lines().collect::<Vec<_>>().join(", ");
    let hint = unknown_key(&message).unwrap_or_default();
    (line_at(text, start), format!("{message}{hint}"))
}

/// The line, from 1, in which the byte `at` of `text` lies.
pub(crate) fn line_at(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

/// What to add to serde's message of an unknown key: "unknown field `key`, expected one of
/// `this`, `that`".
fn unknown_key(message: &str) -> Option<String> {
    let mut words = message.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2);
    let key = words.next()?;
    Some(did_you_mean(key, words))
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
    fn an_unknown_key_comes_with_the_nearest() {
        let said = "unknown field `sped`, expected `speed` or `weight`; did you mean \"speed\"?";
        assert_eq!(explained("\n\nsped = 1"), (3, said.to_owned()));
        let (_, said) = explained("colour = 1");
        assert_eq!(said, "unknown field `colour`, expected `speed` or `weight`");
    }

    #[test]
    fn the_line_is_that_of_the_value() {
        assert_eq!(explained("weight = 1\nspeed = 'fast'").0, 2);
        assert_eq!(explained("weight = 1\nspeed = ").0, 2);
    }
}
