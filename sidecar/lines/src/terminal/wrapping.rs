//! Lines of container runtimes' log files. Each contains a piece of a program's output.

use std::borrow::Cow;

use serde::Deserialize;

use super::stamp::stamp;

/// The output that a program wrote to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A piece of a program's output with its control characters. It ends at a newline or where the
/// runtime split a longer line.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece<'a> {
    /// The text; with Docker it includes its `\n`.
    pub text: Cow<'a, str>,
    /// Whether a `\n` belongs after the text.
    pub newline: bool,
    /// The output that it was written to.
    pub stream: Stream,
    /// The time in Unix seconds.
    pub at: Option<f64>,
}

/// Whether [`unwrap`] may unpack a line. Fast, for most lines.
#[inline]
pub fn may_be_wrapped(line: &str) -> bool {
    // The timestamp of a CRI runtime always has this form.
    matches!(line.as_bytes(), [b'{', b'"', b'l', ..] | [b'0'..=b'9', _, _, _, b'-', ..])
}

/// Unpacks a line of Docker's json-file driver or of a CRI runtime; `None` for any other line.
pub fn unwrap(line: &str) -> Option<Piece<'_>> {
    match line.as_bytes() {
        [b'{', ..] => docker(line),
        [b'0'..=b'9', _, _, _, b'-', _, _, _, _, _, b'T', ..] => cri(line),
        _ => None,
    }
}

#[derive(Deserialize)]
struct Docker<'a> {
    #[serde(borrow)]
    log: Cow<'a, str>,
    #[serde(borrow)]
    stream: Cow<'a, str>,
    #[serde(borrow, default)]
    time: Cow<'a, str>,
}

/// `{"log":"…\n","stream":"stdout","time":"2026-01-01T10:00:00.5Z"}`.
fn docker(line: &str) -> Option<Piece<'_>> {
    if !line.starts_with("{\"log\":") {
        return None;
    }
    let Docker { log, stream, time } = serde_json::from_str(line).ok()?;
    let at = stamp(&time).and_then(|(at, _)| at);
    Some(Piece { text: log, newline: false, stream: stream_named(&stream)?, at })
}

/// `2026-01-01T10:00:00.5Z stdout F …`; `P` is a part of a line.
fn cri(line: &str) -> Option<Piece<'_>> {
    let (when, rest) = line.split_once(' ')?;
    let (stream, rest) = rest.split_once(' ')?;
    let stream = stream_named(stream)?;
    let (tags, text) = rest.split_once(' ').unwrap_or((rest, ""));
    let newline = match tags.split(':').next()? {
        "F" => true,
        "P" => false,
        _ => return None,
    };
    let (at, _) = stamp(when)?;
    Some(Piece { text: Cow::Borrowed(text), newline, stream, at })
}

fn stream_named(name: &str) -> Option<Stream> {
    match name {
        "stdout" => Some(Stream::Stdout),
        "stderr" => Some(Stream::Stderr),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_unpacked_unchanged() {
        let docker =
            r#"{"log":"1/8 \u001b[1m━\r2/8\n","stream":"stdout","time":"2026-01-01T10:00:00.5Z"}"#;
        let piece = unwrap(docker).unwrap();
        assert_eq!(piece.text, "1/8 \u{1b}[1m━\r2/8\n");
        assert_eq!((piece.newline, piece.stream), (false, Stream::Stdout));
        assert_eq!(piece.at, Some(1_767_261_600.5));
        for (line, text, newline, stream) in [
            ("2026-01-01T10:00:00.5Z stdout F loss: 1", "loss: 1", true, Stream::Stdout),
            ("2026-01-01T11:00:00.5+01:00 stderr P \r1/8", "\r1/8", false, Stream::Stderr),
            ("2026-01-01T10:00:00.5Z stdout F ", "", true, Stream::Stdout),
            ("2026-01-01T10:00:00.5Z stdout F", "", true, Stream::Stdout),
        ] {
            let text = Cow::Borrowed(text);
            let expected = Piece { text, newline, stream, at: Some(1_767_261_600.5) };
            assert_eq!(unwrap(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn other_lines_are_not_unwrapped() {
        for line in [
            "",
            "loss: 1",
            r#"{"log":1}"#,
            r#"{"loss":1}"#,
            "2026-01-01T10:00:00Z loss: 1",
            "2026-01-01T10:00:00Z stdout X text",
            "12 stdout F text",
        ] {
            assert_eq!(unwrap(line), None, "{line}");
        }
    }
}
