//! JSON objects whose text member is a line of the program, as log collectors write them.

use serde::Deserialize;

/// Members with the text, as Fluent Bit, Google Cloud, Elastic and journald name them.
#[derive(Deserialize)]
struct Envelope {
    #[serde(
        alias = "message",
        alias = "msg",
        alias = "MESSAGE",
        alias = "line",
        alias = "text",
        alias = "textPayload"
    )]
    log: Option<String>,
    #[serde(rename = "jsonPayload")]
    payload: Option<Box<Envelope>>,
}

/// Maximum length of an object in bytes.
const MAX_LEN: usize = 64 * 1024;

/// The text of the program in the object `text`, with its control characters.
pub(super) fn message(text: &str) -> Option<String> {
    if text.len() > MAX_LEN {
        return None;
    }
    let Envelope { log, payload } = serde_json::from_str(text).ok()?;
    log.or_else(|| payload?.log).filter(|message| !message.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_found_under_its_names() {
        for (text, line) in [
            (r#"{"date": 1.5, "log": "step 5\n", "stream": "stdout"}"#, Some("step 5\n")),
            (r#"{"severity": "INFO", "message": "a \"b\""}"#, Some("a \"b\"")),
            (r#"{"jsonPayload": {"message": "step 5"}}"#, Some("step 5")),
            (r#"{"log": "\r1/4\r2/4"}"#, Some("\r1/4\r2/4")),
            (r#"{"log": "\n"}"#, None),
            (r#"{"log": 5}"#, None),
            (r#"{"step": 5}"#, None),
            ("{", None),
        ] {
            assert_eq!(message(text).as_deref(), line, "{text}");
        }
    }
}
