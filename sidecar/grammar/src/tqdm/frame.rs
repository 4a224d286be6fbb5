//! The parts of a frame.

use paceline_lines::{bytes, scan};

/// `{desc}: {percent}%|{bar}| {n}/{total} [{elapsed}<{remaining}, {rate}, {postfix}]`. Without a
/// total: `{desc}: {n}it [{elapsed}, {rate}, {postfix}]`. alive-progress has a form of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Frame<'a> {
    pub(super) form: Form,
    pub(super) desc: &'a str,
    pub(super) n: u64,
    pub(super) total: Option<u64>,
    pub(super) unit: Unit,
    /// The time of one unit in seconds.
    pub(super) seconds: Option<f64>,
    pub(super) postfix: &'a str,
}

/// The library that drew a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// tqdm.
    Tqdm,
    /// rich, see [`super::rich`].
    Rich,
}

/// The unit that a bar counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Steps,
    Samples,
    Epochs,
    Other,
}

impl<'a> Frame<'a> {
    /// Splits a frame into its parts; `None` for any other text.
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        if !bytes::contains(line.as_bytes(), b'[') {
            return None;
        }
        let bytes = line.as_bytes();
        let mut pipes = memchr::memchr_iter(b'|', bytes);
        let first = pipes.clone().next();
        let after_percent =
            |at: &usize| at.checked_sub(1).and_then(|at| bytes.get(at)) == Some(&b'%');
        match pipes.find(after_percent).or(first) {
            Some(open) => Self::bar(line, open),
            None => Self::count(line).or_else(|| Self::bare(line)),
        }
    }

    fn bar(line: &'a str, open: usize) -> Option<Self> {
        let (desc, rest) = line.split_at_checked(open)?;
        let desc = match desc.strip_suffix('%') {
            Some(desc) => without_digits(desc),
            None => desc,
        };
        let bar = rest.strip_prefix('|')?;
        let rest = bar.get(memchr::memchr(b'|', bar.as_bytes())? + 1..)?;
        // alive-progress draws a spinner before the counter.
        let rest = rest.trim_start_matches(|c: char| !c.is_ascii() || c == ' ');
        let (n, rest) = scan::scaled_count(scan::spaces(rest))?;
        let rest = rest.strip_prefix('/')?;
        let (total, rest) = match rest.strip_prefix('?') {
            Some(rest) => (None, rest),
            None => scan::scaled_count(rest).map(|(total, rest)| (Some(total), rest))?,
        };
        let inside = rest.strip_prefix(" [")?;
        let mark = inside.bytes().position(|byte| matches!(byte, b'%' | b'<'))?;
        let (elapsed, rest) = inside.split_at_checked(mark)?;
        if let Some(rest) = rest.strip_prefix("%] in ") {
            return Self::alive(desc, n, total, rest).filter(|_| scan::whole(elapsed).is_some());
        }
        let rest = rest.strip_prefix('<')?;
        let times = memchr::memchr2(b',', b']', rest.as_bytes()).filter(|_| is_time(elapsed))?;
        Some(Self::with_rate(desc, n, total, rest.get(times + 1..)?, None))
    }

    /// alive-progress: `Train |███     | 5/20 [25%] in 5s (~15s, 5.0/s) loss=0.5`; `rest` is the text
    /// from the elapsed time on.
    fn alive(desc: &'a str, n: u64, total: Option<u64>, rest: &'a str) -> Option<Self> {
        let (_, rest) = rest.split_once(" (")?;
        let (times, postfix) = rest.split_once(')')?;
        let rate = times.rsplit(", ").next().and_then(|rate| rate.strip_suffix("/s"));
        let seconds = rate.and_then(scan::whole).filter(|rate| *rate > 0.0).map(f64::recip);
        let desc = desc.trim_ascii().trim_end_matches(':');
        let postfix = postfix.trim_ascii();
        Some(Self { form: Form::Tqdm, desc, n, total, unit: Unit::Steps, seconds, postfix })
    }

    /// A frame whose bar was lost with its characters: `Epoch 0:  50% 1/2 [00:00<00:01, 4.0it/s]`.
    fn bare(line: &'a str) -> Option<Self> {
        let (before, rest) = line.split_once("% ").filter(|_| line.ends_with(']'))?;
        let desc = without_digits(before);
        let (n, rest) =
            scan::scaled_count(scan::spaces(rest)).filter(|_| desc.len() < before.len())?;
        let (total, rest) = scan::scaled_count(rest.strip_prefix('/')?)?;
        let (elapsed, rest) = rest.strip_prefix(" [")?.split_once('<')?;
        let (_, rest) = rest.split_once([',', ']']).filter(|_| is_time(elapsed))?;
        Some(Self::with_rate(desc, n, Some(total), rest, None))
    }

    fn count(line: &'a str) -> Option<Self> {
        if !line.ends_with(']') {
            return None;
        }
        let (before, rest) = line.split_once(" [")?;
        let (desc, counted) = before.rsplit_once(' ').unwrap_or(("", before));
        let (n, unit) = scan::scaled_count(counted)?;
        let (elapsed, rest) = rest.split_once([',', ']'])?;
        if !is_time(elapsed) || unit.is_empty() || !unit.bytes().all(|b| b.is_ascii_alphabetic()) {
            return None;
        }
        Some(Self::with_rate(desc, n, None, rest, Some(unit)))
    }

    /// `rest` is the text after the times.
    fn with_rate(
        desc: &'a str,
        n: u64,
        total: Option<u64>,
        rest: &'a str,
        unit: Option<&str>,
    ) -> Self {
        // In mixed streams, other text may follow the frame.
        let end = memchr::memchr(b'{', rest.as_bytes()).unwrap_or(rest.len());
        let rest = rest.get(..end).unwrap_or_default();
        // Without a postfix, the frame ends after the rate; other text with brackets may follow.
        let end = match memchr::memchr2(b']', b',', rest.as_bytes()) {
            Some(end) if rest.as_bytes().get(end) == Some(&b']') => Some(end),
            _ => memchr::memrchr(b']', rest.as_bytes()),
        };
        let inside = end.and_then(|end| rest.get(..end));
        let (rate, postfix) = scan::first_listed(inside.unwrap_or(rest));
        let postfix = postfix.unwrap_or_default();
        // A terminal that is too narrow cuts the frame, and so the last number.
        let whole = inside.map(|_| postfix);
        let postfix = whole.or_else(|| postfix.rsplit_once(", ").map(|(whole, _)| whole));
        let postfix = postfix.unwrap_or_default();
        let (seconds, of) = per(rate.trim_ascii());
        let unit = unit.or(of).map_or(Unit::Steps, Unit::named);
        let desc = desc.trim_ascii().trim_end_matches(':');
        Self { form: Form::Tqdm, desc, n, total, unit, seconds, postfix }
    }
}

const SAMPLES: [&str; 16] = [
    "img", "imgs", "image", "images", "sample", "samples", "ex", "example", "examples", "sent",
    "seq", "doc", "docs", "tok", "token", "tokens",
];

impl Unit {
    /// The unit with this name.
    pub(super) fn named(name: &str) -> Self {
        let name = name.trim_ascii();
        let is = |list: &[&str]| list.iter().any(|known| name.eq_ignore_ascii_case(known));
        if is(&[
            "it", "its", "step", "steps", "batch", "batches", "ba", "iter", "iters", "update",
            "updates",
        ]) {
            Self::Steps
        } else if is(&SAMPLES) {
            Self::Samples
        } else if is(&["epoch", "epochs", "ep"]) {
            Self::Epochs
        } else {
            Self::Other
        }
    }
}

/// The time of one unit in seconds from `19.65it/s` or `1.20s/it`, and the unit.
pub(super) fn per(rate: &str) -> (Option<f64>, Option<&str>) {
    let (number, unit) = match rate.strip_prefix('?') {
        Some(unit) => (None, unit),
        None => match scan::number(rate) {
            Some((number, unit)) => (Some(number).filter(|number| *number > 0.0), unit),
            None => return (None, None),
        },
    };
    let unit = unit.trim_ascii_start();
    if let Some(unit) = unit.strip_suffix("/s").filter(|unit| !unit.contains('/')) {
        (number.map(|number| 1.0 / number), Some(unit))
    } else if let Some(unit) = unit.strip_prefix("s/") {
        (number, Some(unit))
    } else {
        (None, None)
    }
}

/// `text` without the digits at its end.
fn without_digits(text: &str) -> &str {
    let digits = text.bytes().rev().take_while(u8::is_ascii_digit).count();
    text.get(..text.len() - digits).unwrap_or(text)
}

/// `00:01`, `1:00:01`, `?`.
pub(super) fn is_time(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_digit() || b":?".contains(&byte);
    !text.is_empty() && text.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame<'a>(
        desc: &'a str,
        (n, total): (u64, Option<u64>),
        unit: Unit,
        seconds: Option<f64>,
        postfix: &'a str,
    ) -> Frame<'a> {
        Frame { form: Form::Tqdm, desc, n, total, unit, seconds, postfix }
    }

    #[test]
    fn frames_are_split_into_parts() {
        for (line, expected) in [
            (
                "Epoch 1/3:   5%|▌         | 2/40 [00:00<00:01, 20.00it/s, loss=1.15, lr=0.001]",
                frame("Epoch 1/3", (2, Some(40)), Unit::Steps, Some(0.05), "loss=1.15, lr=0.001"),
            ),
            (
                "  0%|          | 0/48 [00:00<?, ?it/s]",
                frame("", (0, Some(48)), Unit::Steps, None, ""),
            ),
            (
                "50%|#####     | 5/10 [00:10<00:10,  2.00s/it]",
                frame("", (5, Some(10)), Unit::Steps, Some(2.0), ""),
            ),
            (
                "a | b: 50%|#####| 1.2k/10k [1:00:10<5:00:10, 2.00img/s]",
                frame("a | b", (1200, Some(10_000)), Unit::Samples, Some(0.5), ""),
            ),
            (
                "Epoch 0: |          | 12/? [00:10<00:00, 4.00it/s, v_num=0]",
                frame("Epoch 0", (12, None), Unit::Steps, Some(0.25), "v_num=0"),
            ),
            (
                "Train |███⚠    | ▃▅▇ 5/20 [25%] in 5s (~15s, 4.0/s) loss=0.5, lr=0.1",
                frame("Train", (5, Some(20)), Unit::Steps, Some(0.25), "loss=0.5, lr=0.1"),
            ),
            (
                "|████████| 20/20 [100%] in 10.0s (2.00/s)",
                frame("", (20, Some(20)), Unit::Steps, Some(0.5), ""),
            ),
            (
                "123it [00:05, 25.0it/s, loss=0.5]",
                frame("", (123, None), Unit::Steps, Some(0.04), "loss=0.5"),
            ),
            (
                "Epoch 0:  50% 1/2 [00:00<00:00,  4.00it/s, loss=2.5]",
                frame("Epoch 0", (1, Some(2)), Unit::Steps, Some(0.25), "loss=2.5"),
            ),
            ("go: 123it [00:05, 25.0it/s]", frame("go", (123, None), Unit::Steps, Some(0.04), "")),
            (
                "Epoch 1/2:  50%|##| 5/10 [00:10<00:10, 2.00s/update, loss=0.5]",
                frame("Epoch 1/2", (5, Some(10)), Unit::Steps, Some(2.0), "loss=0.5"),
            ),
            (
                "Map: 100%|██| 5/5 [00:00<00:00, 10.0 examples/s]",
                frame("Map", (5, Some(5)), Unit::Samples, Some(0.1), ""),
            ),
            (
                "x:  1%|▏| 1.00M/99M [00:00<00:09, 9.99MB/s]",
                frame("x", (1_000_000, Some(99_000_000)), Unit::Other, Some(1.0 / 9.99), ""),
            ),
        ] {
            assert_eq!(Frame::parse(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn cut_number_of_a_frame_is_left_out() {
        for (line, expected) in [
            (
                "50%|#####| 5/10 [00:10<00:10, 2.00s/it, loss=0.25, lr=0.0",
                frame("", (5, Some(10)), Unit::Steps, Some(2.0), "loss=0.25"),
            ),
            (
                "50%|#####| 5/10 [00:10<00:10, 2.00s/it, loss=0.2",
                frame("", (5, Some(10)), Unit::Steps, Some(2.0), ""),
            ),
            (
                "5%|▌| 2/40 [00:00<00:01, 20.0it/s]{'loss': 0.5, 'l': [1]}",
                frame("", (2, Some(40)), Unit::Steps, Some(0.05), ""),
            ),
            (
                "5%|▌| 2/40 [00:00<00:01, 20.0it/s][2026-01-01 10:00:00] [INFO] at 2/9, rate=0.5, l=[1]",
                frame("", (2, Some(40)), Unit::Steps, Some(0.05), ""),
            ),
        ] {
            assert_eq!(Frame::parse(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn text_that_is_no_frame_is_left_alone() {
        for line in [
            "",
            "|",
            "| a | b |",
            "%|",
            "5%|",
            "50%|####",
            "50%|####| 5/",
            "50%|####| 5/10 [00",
            "| epoch 1 | 200/ 2983 batches |",
            "Loss: 1 [640/60000]",
            "x [12:30, y]",
            "loss [5]",
        ] {
            assert_eq!(Frame::parse(line), None, "{line}");
        }
    }
}
