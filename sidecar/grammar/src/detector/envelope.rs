//! JSON objects whose text member is a line of the program, as log collectors write them.

use serde::Deserialize;
use serde::de::IgnoredAny;

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

/// A cell's output in the log of a Kaggle notebook, which is one list over all lines.
#[derive(Deserialize)]
struct Output {
    #[serde(rename = "stream_name")]
    _stream: IgnoredAny,
    data: String,
}

/// Maximum length of an object in bytes.
const MAX_LEN: usize = 64 * 1024;

/// The key of such an output, and the marks of the list around it.
const STREAM: &str = "\"stream_name\"";
const BEFORE_ENTRY: [char; 2] = ['[', ','];
const AFTER_ENTRY: [char; 3] = [']', ',', ' '];

/// Whether a line may be an object of a log collector.
pub(super) fn may_be(text: &str) -> bool {
    text.starts_with('{') || text.starts_with(",{") || text.starts_with("[{")
}

/// The text of the program in the object `text`, with its control characters.
pub(super) fn message(text: &str) -> Option<String> {
    if text.len() > MAX_LEN {
        return None;
    }
    if text.contains(STREAM) {
        let entry = text.trim_start_matches(BEFORE_ENTRY).trim_end_matches(AFTER_ENTRY);
        if let Ok(Output { data, .. }) = serde_json::from_str(entry) {
            return Some(data).filter(|data| !data.trim().is_empty());
        }
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
            (r#"[{"stream_name":"stdout","time":4.5,"data":"step 5\n"}"#, Some("step 5\n")),
            (r#",{"stream_name":"stderr","time":4.5,"data":"a"}]"#, Some("a")),
            (r#",{"stream_name":"stderr","time":4.5,"data":"\n"}"#, None),
            (r#"{"message": "step 5", "stream_name": "pod-1"}"#, Some("step 5")),
            (r#"{"log": "\n"}"#, None),
            (r#"{"log": 5}"#, None),
            (r#"{"step": 5}"#, None),
            ("{", None),
        ] {
            assert_eq!(message(text).as_deref(), line, "{text}");
        }
    }
}
