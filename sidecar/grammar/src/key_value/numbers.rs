//! What stands beside a number: its name, its total, further values, its unit.

use paceline_lines::scan;

pub(super) fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A counter in one word, such as `E1/3`, `B10/50` and `step100`: its name, and its numbers. A letter
/// alone needs a total.
#[inline]
pub(super) fn attached(word: &str) -> Option<(&'static str, &str)> {
    let bytes = word.as_bytes();
    let may_be = bytes.last().is_some_and(u8::is_ascii_digit)
        && matches!(bytes.first(), Some(b'e' | b'E' | b'b' | b'B' | b's' | b'S' | b'i' | b'I'));
    if may_be { counter_in(word) } else { None }
}

/// The same, for a word that may be one.
fn counter_in(word: &str) -> Option<(&'static str, &str)> {
    let (letters, numbers) = word.split_at_checked(word.find(|c: char| !c.is_alphabetic())?)?;
    // `Epoch-3`.
    let is_epoch = letters.eq_ignore_ascii_case("epoch");
    let numbers = numbers.strip_prefix('-').filter(|_| is_epoch).unwrap_or(numbers);
    let (count, rest) = scan::count(numbers)?;
    let total = rest.strip_prefix('/').and_then(scan::count);
    let is_whole = rest.is_empty() || total.is_some_and(|(_, rest)| rest.is_empty());
    if !is_whole || count > MAX_ATTACHED {
        return None;
    }
    let name = ATTACHED.iter().find(|(known, _)| letters.eq_ignore_ascii_case(known))?.1;
    (letters.len() > 1 || total.is_some()).then_some((name, numbers))
}

/// A loss and its value in one word, such as `loss0.545` and `Loss0.545-`: its name, and the text from
/// its value on. Fewer digits after the point may be a version.
#[inline]
pub(super) fn glued_loss(word: &str) -> Option<(&str, &str)> {
    let point = memchr::memchr(b'.', word.as_bytes())?;
    let name = word.get(..point)?.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_loss = name.len() < point && (name.ends_with("oss") || name.ends_with("OSS"))
        // The name of a run.
        && !name.contains('-');
    let number = word.get(name.len()..).filter(|_| is_loss)?;
    let (_, rest) = scan::number(number)?;
    let digits = (word.len() - rest.len()).saturating_sub(point + 1);
    (digits >= MIN_DIGITS && matches!(rest, "" | "-")).then_some((name, number))
}

/// Minimum number of digits after the point of a value in the word of its loss.
const MIN_DIGITS: usize = 2;

/// The name of a counter that is one letter: `E: 1/20`.
pub(super) fn lettered(word: &str) -> Option<&'static str> {
    let is = |(known, _): &&(&str, &str)| known.len() == 1 && word.eq_ignore_ascii_case(known);
    ATTACHED.iter().find(is).map(|(_, name)| *name)
}

/// Names of counters that their number may follow directly, and what they mean.
const ATTACHED: [(&str, &str); 10] = [
    ("e", "epoch"),
    ("ep", "epoch"),
    ("epoch", "epoch"),
    ("b", "batch"),
    ("batch", "batch"),
    ("s", "step"),
    ("step", "step"),
    ("i", "iter"),
    ("it", "iter"),
    ("iter", "iter"),
];

/// A larger number directly after a name is part of the name.
const MAX_ATTACHED: u64 = 1_000_000_000;

/// The length of the values after slashes at the start of `text`: `/0.5`, ` / 0.5 / 0.25`. A whole
/// number is a total.
pub(super) fn further(text: &str) -> Option<usize> {
    let mut rest = text;
    while let Some(number) = rest.trim_start_matches(' ').strip_prefix('/') {
        let number = number.trim_start_matches(' ');
        let Some((_, after)) = scan::number(number) else { break };
        let is_whole = !number.get(..number.len() - after.len()).is_some_and(|n| n.contains('.'));
        let goes_on = after.trim_start_matches(' ').starts_with('/');
        if is_whole || !(goes_on || scan::ends_before(after)) {
            break;
        }
        rest = after;
    }
    Some(text.len() - rest.len()).filter(|length| *length > 0)
}

/// Whether the steps that a mean is of follow `word`.
pub(super) fn begins_extent(word: &str) -> bool {
    ["for", "over", "last", "past", "during", "of"]
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known))
}

/// The word at the start of `text`, if it names what is counted.
pub(super) fn counted(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(' ').filter(|rest| may_count(rest))?;
    let length = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
    rest.get(..length).filter(|word| is_counted(word))
}

/// Words for a step.
const STEPS: [&str; 10] = [
    "step",
    "steps",
    "iter",
    "iters",
    "iteration",
    "iterations",
    "batch",
    "batches",
    "update",
    "updates",
];

/// Whether `word` names what is counted: `steps`, `batches`, `samples`.
pub(super) fn is_counted(word: &str) -> bool {
    const OTHERS: [&str; 5] = ["epoch", "epochs", "samples", "examples", "minibatches"];
    may_count(word) && STEPS.iter().chain(&OTHERS).any(|known| word.eq_ignore_ascii_case(known))
}

/// Whether `word` names data, of which a batch has several.
pub(super) fn is_data(word: &str) -> bool {
    DATA.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// Words for data.
const DATA: [&str; 9] = [
    "documents",
    "examples",
    "images",
    "imgs",
    "particles",
    "samples",
    "sentences",
    "sequences",
    "tokens",
];

/// Whether `word` names steps.
pub(super) fn is_step(word: &str) -> bool {
    STEPS.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// Whether `word` begins like a word that [`is_counted`].
pub(super) fn may_count(word: &str) -> bool {
    let first = word.as_bytes().first().map(|first| first | 0x20);
    matches!(first, Some(b's' | b'i' | b'b' | b'u' | b'e' | b'm'))
}

/// The number after a slash or "of", and the text after it.
#[inline]
pub(super) fn denominator(text: &str) -> Option<(u64, &str)> {
    let trimmed = text.trim_start_matches(' ');
    let of = trimmed.strip_prefix("out ").unwrap_or(trimmed);
    let of = of.strip_prefix("of ").filter(|_| trimmed.len() < text.len());
    scan::count(trimmed.strip_prefix('/').or(of)?.trim_start_matches(' '))
}

/// A unit of time after a space, and the text after it.
#[inline]
pub(super) fn spaced_unit(text: &str) -> (&str, &str) {
    let Some(rest) = text.strip_prefix(' ') else { return ("", text) };
    if !rest.starts_with(['s', 'm', 'u']) {
        return ("", text);
    }
    let length = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
    let Some((unit, after)) = rest.split_at_checked(length) else { return ("", text) };
    let is_unit = ["s", "sec", "secs", "second", "seconds", "ms", "msec", "us"].contains(&unit);
    // In `0.5 s: 3` it is a key.
    if is_unit && !after.starts_with([':', '=', '/', '_']) { (unit, after) } else { ("", text) }
}

/// The text after the step that a time without a unit is of: `/it`.
#[inline]
pub(super) fn after_slash(after: &str) -> Option<&str> {
    let rest = after.strip_prefix('/').filter(|rest| may_count(rest))?;
    let length = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
    let (word, rest) = rest.split_at_checked(length)?;
    let is_one = is_step(word) || word.eq_ignore_ascii_case("it");
    (is_one && !rest.starts_with([':', '=', '_', '/'])).then_some(rest)
}

/// The time of a step in seconds from `250ms/step`, `0.855 sec/step`, `4.0 it/s`, and the text
/// after it.
#[inline]
pub(super) fn per_step<'a>(value: f64, unit: &str, after: &'a str) -> (Option<f64>, &'a str) {
    let next = after.trim_start_matches(' ').as_bytes().first();
    if unit.is_empty() && !next.is_some_and(u8::is_ascii_alphabetic) {
        return (None, after);
    }
    time_of_step(value, unit, after)
}

/// The same, where a unit may follow.
fn time_of_step<'a>(value: f64, unit: &str, after: &'a str) -> (Option<f64>, &'a str) {
    let (top, rest) = if unit.is_empty() {
        let rest = after.trim_start_matches(' ');
        let length = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        rest.split_at_checked(length).unwrap_or((rest, ""))
    } else {
        (unit, after)
    };
    let per = rest.strip_prefix('/').or_else(|| rest.strip_prefix(" per "));
    let Some(rest) = per else { return (None, after) };
    let length = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
    let Some((bottom, rest)) = rest.split_at_checked(length) else { return (None, after) };
    // `iter/s: 4` is a key.
    if rest.starts_with([':', '=', '_']) || rest.starts_with(" =") {
        return (None, after);
    }
    let is_step = |word: &str| STEPS.contains(&word) || ["it", "its"].contains(&word);
    let seconds = match (top, bottom) {
        ("s" | "sec" | "secs" | "seconds", step) if is_step(step) => value,
        ("ms" | "msec", step) if is_step(step) => value / 1e3,
        ("us" | "µs" | "μs", step) if is_step(step) => value / 1e6,
        (step, "s" | "sec" | "second") if is_step(step) => 1.0 / value,
        _ => return (None, after),
    };
    (Some(seconds).filter(|seconds| *seconds > 0.0 && seconds.is_finite()), rest)
}
