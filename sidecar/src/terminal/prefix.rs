//! What launchers and loggers put before a line.

use super::stamp::{stamp, time};

/// A line without its prefixes, and what they told.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stripped<'a> {
    /// What the program itself printed, without white space around it.
    pub text: &'a str,
    /// The rank of the process that printed it. With `torchrun` it is the rank on its node.
    pub rank: Option<u32>,
    /// When it was printed, in Unix seconds, if the stamp names its time zone.
    pub at: Option<f64>,
}

/// More prefixes than these are part of the text.
const MOST: usize = 8;
/// A longer name in brackets is no prefix.
const LONGEST: usize = 120;

const LEVELS: [&str; 11] = [
    "INFO",
    "WARNING",
    "WARN",
    "ERROR",
    "DEBUG",
    "CRITICAL",
    "FATAL",
    "SUCCESS",
    "TRACE",
    "NOTICE",
    "EXCEPTION",
];

/// Takes off the prefixes of torchrun, MPI, Ray, klog, absl and Python's loggers.
pub fn strip(line: &str) -> Stripped<'_> {
    let mut stripped = Stripped { text: line.trim_ascii(), rank: None, at: None };
    if let [b'A'..=b'Q' | b'S'..=b'Z', b'a'..=b'z', ..] | [b'{', ..] = stripped.text.as_bytes() {
        return stripped;
    }
    let mut before = Before::default();
    for _ in 0..MOST {
        let Some(rest) = one(&mut stripped, &mut before) else { break };
        stripped.text = rest.trim_ascii_start();
    }
    stripped
}

/// What has been taken off so far.
#[derive(Default)]
struct Before {
    stamp: bool,
    anything: bool,
}

/// What follows the first prefix of the text, if it has one.
fn one<'a>(found: &mut Stripped<'a>, before: &mut Before) -> Option<&'a str> {
    let text = found.text;
    let (first, second) = match text.as_bytes() {
        [first, second, ..] => (*first, *second),
        _ => return None,
    };
    let rest = match first {
        b'[' => bracketed(found, before),
        b'(' => ray(found),
        b'0'..=b'9' => stamped(found, before),
        b'r' | b'R' => rank(text).and_then(|(rank, rest)| {
            found.rank = Some(rank);
            rest.strip_prefix(':')
        }),
        b'A'..=b'Z' if second.is_ascii_uppercase() => level(text).map(separator),
        b'A'..=b'Z' if second.is_ascii_digit() => klog(text).map(separator),
        _ => None,
    };
    let rest = rest.or_else(|| if before.anything { name(text) } else { None });
    before.anything |= rest.is_some();
    rest
}

/// `[default0]:`, `[rank0]`, `[1,0]<stdout>:`, `[2026-01-01 10:00:00]`, `[INFO]`, `[titan]`.
fn bracketed<'a>(found: &mut Stripped<'a>, before: &mut Before) -> Option<&'a str> {
    let (inside, rest) = found.text.strip_prefix('[')?.split_once(']')?;
    if inside.len() > LONGEST {
        return None;
    }
    let letters = inside.trim_end_matches(|c: char| c.is_ascii_digit());
    if let Some((rank, "")) = rank(inside) {
        found.rank = Some(rank);
        return Some(separator(rest));
    }
    if let Some(after) = rest.strip_prefix(':')
        && letters.starts_with(|c: char| c.is_alphabetic())
        && let Some(number) = inside.strip_prefix(letters).and_then(|digits| digits.parse().ok())
    {
        found.rank = Some(number);
        return Some(after);
    }
    let after_stream = rest.strip_prefix("<stdout>:").or_else(|| rest.strip_prefix("<stderr>:"));
    if let (Some(after), Some((_, rank))) = (after_stream, inside.split_once(',')) {
        found.rank = rank.parse().ok();
        return Some(after);
    }
    if let Some((at, _)) = stamp(inside).or_else(|| time(inside).map(|(_, rest)| (None, rest))) {
        found.at = at.or(found.at);
        before.stamp = true;
        return Some(separator(rest));
    }
    let is_level = level(inside.trim_start()).is_some_and(|rest| rest.trim().is_empty());
    let is_name = inside.contains(['.', '_']) || ["root", "titan"].contains(&inside);
    let stamped = before.stamp || stamp(rest.trim_start()).is_some();
    (is_level || (is_name && stamped)).then(|| separator(rest))
}

/// `(RayTrainWorker pid=1234, ip=10.0.0.1)`; then the line may end in `[repeated 3x across cluster]`.
fn ray<'a>(found: &mut Stripped<'a>) -> Option<&'a str> {
    let (inside, rest) = found.text.strip_prefix('(')?.split_once(')')?;
    // The worker's name may itself be in the form `RayTrainWorker(rank=3)`.
    let (inside, rest) = match inside.split_once('(') {
        Some((_, told)) => {
            found.rank = rank(told).map(|(rank, _)| rank).or(found.rank);
            rest.split_once(')')?
        }
        None => (inside, rest),
    };
    if inside.len() > LONGEST || !inside.contains("pid=") {
        return None;
    }
    let repeated = rest.ends_with("across cluster]").then(|| rest.rsplit_once("[repeated "));
    Some(repeated.flatten().map_or(rest, |(text, _)| text.trim_end()))
}

/// A date and time, and what Python's loggers and others put between it and the text.
fn stamped<'a>(found: &mut Stripped<'a>, before: &mut Before) -> Option<&'a str> {
    let text = found.text;
    let (at, rest) = match stamp(text) {
        Some(stamped) => stamped,
        None => (None, time(text)?.1),
    };
    if !rest.starts_with([' ', '\t', '|', ']', ':']) {
        return None;
    }
    found.at = at.or(found.at);
    before.stamp = true;
    Some(separator(rest))
}

/// `I0519 16:28:41.434724      12 main.go:136]`.
fn klog(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(['I', 'W', 'E', 'F'])?;
    let (date, rest) = rest.split_at_checked(4)?;
    if !date.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (_, rest) = time(rest.strip_prefix(' ')?)?;
    let (place, rest) = rest.split_once("] ")?;
    (place.len() <= LONGEST).then_some(rest)
}

/// What follows `INFO` or the like, and the logger's name in `INFO:root:`.
fn level(text: &str) -> Option<&str> {
    if !text.as_bytes().first()?.is_ascii_uppercase() {
        return None;
    }
    let rest = LEVELS.iter().find_map(|level| text.strip_prefix(level))?;
    if let Some((logger, after)) = rest.strip_prefix(':').and_then(|rest| rest.split_once(':'))
        && is_identifier(logger)
    {
        return Some(after);
    }
    (rest.is_empty() || rest.starts_with([' ', '\t', ':', ']', '-', '|'])).then_some(rest)
}

/// What follows a logger's name: `__main__ - `, `train.py:12 - `, or `name - INFO - `.
fn name(text: &str) -> Option<&str> {
    let length = memchr::memchr(b' ', text.as_bytes()).filter(|length| *length <= LONGEST)?;
    let (name, rest) = text.split_at_checked(length)?;
    let rest = rest.strip_prefix(" - ").or_else(|| rest.strip_prefix(" | "))?;
    if !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        return None;
    }
    let next_is_level = level(rest).is_some_and(|after| separator(after).len() < after.len());
    let is_place = || name.starts_with("__") || name.contains(['.', ':']);
    (next_is_level || is_place()).then_some(rest)
}

/// A rank at the start of `text`, as in `rank0` and `Rank 3`; what follows.
fn rank(text: &str) -> Option<(u32, &str)> {
    let (word, rest) = text.split_at_checked(4)?;
    if !word.eq_ignore_ascii_case("rank") {
        return None;
    }
    let rest = rest.trim_start_matches([' ', '=', ':', '_']);
    let length = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = rest.split_at_checked(length)?;
    Some((digits.parse().ok()?, rest))
}

/// What follows one separator.
fn separator(text: &str) -> &str {
    let text = text.trim_ascii_start();
    let length = match text.as_bytes() {
        [b'-' | b'|' | b':', b' ', ..] => 2,
        [b':', ..] => 1,
        _ => 0,
    };
    text.get(length..).unwrap_or(text)
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str) -> (&str, Option<u32>, Option<f64>) {
        let Stripped { text, rank, at } = strip(line);
        (text, rank, at)
    }

    #[test]
    fn launchers_tell_the_rank() {
        for (line, rank) in [
            ("[default0]:loss: 0.5", 0),
            ("[trainer12]: loss: 0.5", 12),
            ("[rank0]:loss: 0.5", 0),
            ("[rank1]: loss: 0.5", 1),
            ("[RANK3] loss: 0.5", 3),
            ("[Rank 3] loss: 0.5", 3),
            ("rank0: loss: 0.5", 0),
            ("Rank 2: loss: 0.5", 2),
            ("[1,4]<stdout>:loss: 0.5", 4),
            ("(RayTrainWorker(rank=3) pid=77) loss: 0.5", 3),
            ("[rank0]:[titan] 2026-01-01 10:00:00,123 - root - INFO - loss: 0.5", 0),
        ] {
            assert_eq!(told(line), ("loss: 0.5", Some(rank), None), "{line}");
        }
    }

    #[test]
    fn stamps_and_loggers_are_taken_off() {
        for line in [
            "loss: 0.5",
            "  loss: 0.5 ",
            "(RayTrainWorker pid=1234, ip=10.0.0.1) loss: 0.5",
            "(train_fn pid=1234) loss: 0.5 [repeated 3x across cluster]",
            "2026-01-01 10:00:00,123 - INFO - loss: 0.5",
            "2026-01-01 10:00:00,123 - __main__ - INFO - loss: 0.5",
            "2026-01-01 10:00:00,123 - trainer - INFO - loss: 0.5",
            "2026-01-01 10:00:00 INFO     loss: 0.5",
            "2026-01-01 10:00:00.123 | INFO     | pkg.mod:fit:12 - loss: 0.5",
            "[2026-01-01 10:00:00,123][root][INFO] - loss: 0.5",
            "[2026-01-01 10:00:00] loss: 0.5",
            "01/31/2026 10:00:00 - INFO - __main__ - loss: 0.5",
            "12:34:56 SUCCESS loss: 0.5",
            "INFO:root:loss: 0.5",
            "INFO:__main__:loss: 0.5",
            "[INFO] loss: 0.5",
            "INFO - loss: 0.5",
            "I0519 16:28:41.434724      12 main.go:136] loss: 0.5",
            "I1009 17:56:42.674334 3280981 train.py:175] loss: 0.5",
        ] {
            assert_eq!(told(line), ("loss: 0.5", None, None), "{line}");
        }
        let at = Some(1_767_261_600.5);
        assert_eq!(told("2026-01-01T10:00:00.5Z loss: 0.5"), ("loss: 0.5", None, at));
        assert_eq!(told("[2026-01-01T10:00:00.5Z] loss: 0.5"), ("loss: 0.5", None, at));
    }

    #[test]
    fn what_only_looks_like_a_prefix_stays() {
        for line in [
            "[100] accuracy=0.5, loss=2.3",
            "[0]\ttrain-logloss:0.6",
            "[0/25][0/1583] Loss_D: 1.9845 Loss_G: 3.4000",
            "[1,  2000] loss: 2.186",
            "(epoch 1) loss: 0.5",
            "| epoch   1 |   200/ 2983 batches |",
            "Iter 10 - loss - 5",
            "ranking loss: 0.5",
            "12/40 [00:00<00:01]",
            "20260101 steps",
            "Epoch: 1",
            "ERRORS: 5",
            "INFOBOX: 1",
            "{'loss': 1}",
        ] {
            assert_eq!(told(line), (line, None, None), "{line}");
        }
        assert_eq!(told("2026-01-01 10:00:00 - INFO - | epoch 1 |").0, "| epoch 1 |");
        assert_eq!(told("[2026-01-01 10:00:00] [Valid] loss: 1").0, "[Valid] loss: 1");
    }
}
