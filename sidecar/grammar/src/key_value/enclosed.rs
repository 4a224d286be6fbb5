//! What brackets and parentheses after a word contain: counters, data, values.

use paceline_lines::scan;

use super::vocabulary::{Role, role};

/// A counter and its total in brackets with a comma: `[3,90]`. And the text after them.
pub(super) fn in_brackets(text: &str) -> Option<(u32, u64, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let inside = text.strip_prefix('[')?;
    let (value, rest) = inside.split_at_checked(digits(inside))?;
    let rest = rest.strip_prefix(',')?.trim_start_matches(' ');
    let (total, rest) = rest.split_at_checked(digits(rest))?;
    // `[1,000]` is a number.
    if total.starts_with('0') {
        return None;
    }
    let (value, total) = (value.parse().ok()?, total.parse().ok()?);
    (u64::from(value) <= total).then_some((value, total, rest.strip_prefix(']')?))
}

/// Whether the next brackets have a counter and its total, too. One pair of brackets alone may have
/// a number with a comma between its thousands, or the epoch and the batch.
pub(super) fn is_followed_by_brackets(text: &str) -> bool {
    let next = text.find('[').and_then(|at| text.get(at..));
    next.and_then(in_brackets).is_some()
}

/// The value that Julia shows behind an expression, `(x, y) = 0.5`, and the argument that names the data.
pub(super) fn shown_value(text: &str) -> Option<(&str, Option<&str>)> {
    let (inside, value) = text.strip_prefix('(')?.split_once(") = ")?;
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'))
    };
    // With one argument, it may be the name of a part.
    if !inside.contains(", ") || !inside.split(", ").all(is_name) {
        return None;
    }
    let number = value.strip_prefix("param(").unwrap_or(value);
    let (_, after) = scan::number(number)?;
    let after = after.strip_prefix(')').unwrap_or(after).trim_ascii();
    let parts = inside.split([',', ' ', '_', '.']);
    let data = parts.clone().find(|part| role(part).any(Role::DATA));
    // In `testX`, `xdev` and `x_te` it is not certain.
    let is_short = |name: &str| matches!(name.as_bytes(), [_] | [_, b's']);
    let is_plain = data.is_some() || inside.split(", ").all(is_short);
    let is_whole = after.is_empty() || after == "(tracked)";
    (is_whole && is_plain).then_some((value, data))
}

/// Whether a tuple that begins with a number is at the start of `text`: `(0, 0.5)`.
pub(super) fn begins_tuple(text: &str) -> bool {
    let number = text.strip_prefix('(').and_then(scan::number);
    number.is_some_and(|(_, after)| after.starts_with(','))
}

/// Whether parentheses after a word contain the data or the mean that it is of: `Epoch(train)`,
/// `loss(train/val)`.
pub(super) fn is_qualified(rest: &str) -> bool {
    let inside = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    let is_known = |inside: &str| inside.split('/').all(|word| role(word).any(Role::AFTER));
    inside.is_some_and(|(inside, _)| inside.len() <= MAX_QUALIFIED && is_known(inside))
}

/// Whether parentheses after a word contain a unit of time: `batch(ms)`. In `step(s)` it is a plural.
pub(super) fn is_unit(rest: &str) -> bool {
    ["(ms)", "(msec)", "(sec)", "(secs)", "(seconds)"].iter().any(|unit| rest.starts_with(unit))
}

/// Maximum length of what is between such parentheses, in bytes.
const MAX_QUALIFIED: usize = 20;
