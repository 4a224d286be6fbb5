//! Bars of rich, also as Lightning draws them.

use paceline_lines::{bytes, scan};

use super::frame::{Form, Frame, Unit, is_time, per};

/// The characters of the bar: its parts, and the two halves at its end.
const BAR: [char; 3] = ['\u{2501}', '\u{2578}', '\u{257a}'];
/// The character of the rest of a bar, as Ultralytics draws it.
const REST: char = '\u{2500}';
/// The first byte of each of these.
const FIRST: u8 = 0xe2;

/// `{desc} {bar} {n}/{total} {elapsed} • {remaining} {rate} {key}: {value} …`. At least one of a
/// percentage, a time and the rate must be present.
pub(super) fn parse(line: &str) -> Option<Frame<'_>> {
    if !bytes::contains(line.as_bytes(), FIRST) {
        return None;
    }
    let (desc, rest) = line.split_at_checked(line.find(BAR)?)?;
    let rest = rest.trim_start_matches(BAR).trim_start_matches(REST);
    let rest = scan::spaces(rest.strip_prefix(' ')?);
    let after_percentage = rest.split_once(' ').filter(|(word, _)| is_percentage(word));
    let rest = after_percentage.map_or(rest, |(_, rest)| scan::spaces(rest));
    let (n, rest) = scan::count(rest)?;
    let rest = rest.strip_prefix('/')?;
    let (total, mut rest) = match rest.strip_prefix("--").or_else(|| rest.strip_prefix('?')) {
        Some(rest) => (None, rest),
        None => scan::count(rest).map(|(total, rest)| (Some(total), rest))?,
    };
    let (mut seconds, mut unit, mut is_of_rich) = (None, Unit::Steps, false);
    while let Some(after) = rest.strip_prefix(' ') {
        let after = scan::spaces(after);
        let (word, next) = after.split_at(after.find(' ').unwrap_or(after.len()));
        match per(word) {
            (time, Some(name)) => (seconds, unit) = (time, Unit::named(name)),
            _ if is_mark(word) => {}
            _ => break,
        }
        (rest, is_of_rich) = (next, true);
    }
    let desc = desc.trim_ascii().trim_end_matches(':');
    let postfix = rest.trim_ascii();
    is_of_rich.then_some(Frame { form: Form::Rich, desc, n, total, unit, seconds, postfix })
}

/// A time, a percentage, or the separator of two times.
fn is_mark(word: &str) -> bool {
    let is_clock = || word.contains(':') && is_time(&word.replace('-', "?"));
    word == "\u{2022}" || is_percentage(word) || is_clock()
}

fn is_percentage(word: &str) -> bool {
    word.strip_suffix('%').is_some_and(|number| scan::whole(number).is_some())
}

/// The `key: value` pairs after the times.
pub(super) fn pairs(postfix: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut words = postfix.split_ascii_whitespace();
    std::iter::from_fn(move || {
        let key = words.find_map(|word| word.strip_suffix(':'))?;
        Some((key, words.next()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(
        desc: &'static str,
        n: u64,
        total: Option<u64>,
        seconds: Option<f64>,
        postfix: &'static str,
    ) -> Frame<'static> {
        Frame { form: Form::Rich, desc, n, total, unit: Unit::Steps, seconds, postfix }
    }

    #[test]
    fn frames_of_rich_are_split_into_parts() {
        for (line, expected) in [
            (
                "Epoch 0/2 ━━━━━╸━━━━━ 5/12 0:00:01 • 0:00:02 4.00it/s v_num: 0.000 train_loss: 2.400",
                frame("Epoch 0/2", 5, Some(12), Some(0.25), "v_num: 0.000 train_loss: 2.400"),
            ),
            (
                "Epoch 0/2 ━━━━━━━━━━━ 0/12 0:00:00 • -:--:-- 0.00it/s",
                frame("Epoch 0/2", 0, Some(12), None, ""),
            ),
            ("━━━━━━━━━━━  42% 5/12 0:00:01", frame("", 5, Some(12), None, "")),
            ("━━━━━━━━━━━ 5/12  42%", frame("", 5, Some(12), None, "")),
            (
                "1/3  2.5G  1.5: 50% ━━━━━━────── 6/12 5.0it/s 1.2s<1.2s",
                frame("1/3  2.5G  1.5: 50%", 6, Some(12), Some(0.2), "1.2s<1.2s"),
            ),
            ("Training: ━━━━━╺━━━━━ 5/-- 0:00:01", frame("Training", 5, None, None, "")),
        ] {
            assert_eq!(parse(line), Some(expected), "{line}");
        }
        for line in [
            "━━━━━━━━━━━━━━━ 62.0/62.0 kB 5.2 MB/s eta 0:00:00",
            "━━━━━━━━━━━━━━━ 5/12 kB 5.2 MB/s eta 0:00:00",
            "5/12 ━━━━━━━━━━ 0s 63ms/step - loss: 0.5000",
            "Epoch 0/2 ━━━━━",
            "━ 5/12",
            "━",
            "• 5/12 0:00:01",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
        let pairs: Vec<_> = pairs("v_num: 0.000 loss: nan odd").collect();
        assert_eq!(pairs, [("v_num", "0.000"), ("loss", "nan")]);
    }
}
