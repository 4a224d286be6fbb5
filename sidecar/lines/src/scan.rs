//! Numbers as programs print them.

use crate::number::floor;

/// The longest number at the start of `text`, and the text after it.
///
/// Accepts a sign (also U+2212), digits with or without commas in groups of three, a decimal point,
/// an exponent, also after an `f`. Also `nan`, `inf` and `infinity` in any case, and what older C
/// libraries of Windows print for them: `1.#QNAN`, `-1.#IND00`, `1.#INF000`.
#[inline]
pub fn number(text: &str) -> Option<(f64, &str)> {
    match short(text) {
        Some(found) => Some(found),
        None => long(text),
    }
}

/// Fast path for most numbers: up to nine digits, with or without a decimal point or an exponent.
#[expect(clippy::inline_always, reason = "most values of most lines")]
#[inline(always)]
fn short(text: &str) -> Option<(f64, &str)> {
    let bytes = text.as_bytes();
    let (whole, digits) = run(bytes, 0);
    let (all, fraction, length) = match bytes.get(digits..) {
        Some([b'.', after @ ..]) => {
            let (all, fraction) = run(after, whole);
            (all, fraction, digits + 1 + fraction)
        }
        _ => (whole, 0, digits),
    };
    let digits = digits + fraction;
    let is_longer = match bytes.get(length) {
        Some(b'e' | b'E') => return scaled_by_exponent(text, all, digits, fraction, length),
        Some(b'f' | b'#') => true,
        Some(b',') => bytes.get(length + 1).is_some_and(u8::is_ascii_digit),
        _ => false,
    };
    if is_longer || !(1..=9).contains(&digits) {
        return None;
    }
    // Both are exact, so the quotient is rounded only once.
    let value = f64::from(all);
    let value = if fraction == 0 { value } else { value / POWERS.get(fraction)? };
    Some((value, text.get(length..)?))
}

/// The number `all`, whose last `fraction` of `digits` digits are after the point, with an exponent at
/// `at`. `None` if the result is not exact, or if there are no digits after the `e`.
fn scaled_by_exponent(
    text: &str,
    all: u32,
    digits: usize,
    fraction: usize,
    at: usize,
) -> Option<(f64, &str)> {
    let after = text.as_bytes().get(at + 1..)?;
    let (negative, unsigned) = match after {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, after),
    };
    let (exponent, length) = run(unsigned, 0);
    if !(1..=9).contains(&digits) || !(1..=3).contains(&length) {
        return None;
    }
    let (exponent, fraction) = (i32::try_from(exponent).ok()?, i32::try_from(fraction).ok()?);
    let power = if negative { -exponent } else { exponent } - fraction;
    let factor = POWERS.get(usize::try_from(power.unsigned_abs()).ok()?)?;
    // Both are exact, so the result is rounded only once.
    let value = if power < 0 { f64::from(all) / factor } else { f64::from(all) * factor };
    Some((value, text.get(at + 1 + after.len() - unsigned.len() + length..)?))
}

/// Appends the digits at the start of `bytes` to `before`. Returns the number and the count of
/// digits.
#[inline]
fn run(bytes: &[u8], before: u32) -> (u32, usize) {
    let (mut all, mut length) = (before, 0);
    for byte in bytes {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        all = all.wrapping_mul(10).wrapping_add(digit.into());
        length += 1;
    }
    (all, length)
}

/// Powers of ten that a double holds exactly.
const POWERS: [f64; 16] =
    [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

fn long(text: &str) -> Option<(f64, &str)> {
    let (negative, unsigned) = sign(text);
    let length = extent(unsigned);
    let (digits, rest) = unsigned.split_at_checked(length)?;
    let (value, rest) = if length == 0 {
        word(unsigned)?
    } else if let Some(found) = of_windows(unsigned) {
        found
    } else if let Some((value, rest)) = grouped(digits, rest) {
        (value, rest)
    } else if let Some(at) = memchr::memchr(b'f', digits.as_bytes()) {
        let (number, exponent) = digits.split_at_checked(at)?;
        (format!("{number}e{}", exponent.get(1..)?).parse().ok()?, rest)
    } else {
        (digits.parse().ok()?, rest)
    };
    Some((if negative { -value } else { value }, rest))
}

/// The text after the number at the start of `text`.
#[inline]
pub fn skip_number(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let plain = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.';
    let length = bytes.iter().take_while(plain).count();
    match bytes.get(length) {
        Some(b'e' | b'E' | b'f' | b',') => number(text).map(|(_, rest)| rest),
        _ if length == 0 => number(text).map(|(_, rest)| rest),
        _ => text.get(length..),
    }
}

/// A number without a unit, and the text after it. Not the first part of a date, a time, a version,
/// a range or a fraction. `12.3k` is 12,300.
#[expect(clippy::inline_always, reason = "the loss of each line of a fixed shape")]
#[inline(always)]
pub fn value(text: &str) -> Option<(f64, &str)> {
    let (value, rest) = number(text)?;
    if ends_before(rest) { Some((value, rest)) } else { with_unit(value, rest) }
}

#[inline(never)]
fn with_unit(value: f64, rest: &str) -> Option<(f64, &str)> {
    let (value, rest) = scaled(value, rest);
    ends_before(rest).then_some((value, rest))
}

/// All of `text` as a number; white space around it is allowed.
pub fn whole(text: &str) -> Option<f64> {
    let (value, rest) = value(text.trim_ascii())?;
    rest.is_empty().then_some(value)
}

/// The number at the start of `text` into which another text has run: `0.25Epoch 1/3`, `0.25passed: 2 sec`. Only
/// a number with some decimals, or `nan`, may end there, and one or two letters are a unit.
#[cold]
pub fn run_into(text: &str) -> Option<f64> {
    let text = text.trim_ascii();
    let is_nan = text.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("nan"));
    let (value, rest) = if is_nan { (f64::NAN, text.get(3..)?) } else { number(text)? };
    let digits = text.get(..text.len() - rest.len())?;
    let decimals = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let is_word = match rest.as_bytes() {
        [first, second, third, ..] => {
            let begins = first.is_ascii_uppercase() || rest.starts_with("passed");
            begins && second.is_ascii_lowercase() && third.is_ascii_lowercase()
        }
        _ => false,
    };
    (is_word && (is_nan || decimals >= MIN_DECIMALS)).then_some(value)
}

/// Minimum number of decimals of a number that ends where another text begins.
const MIN_DECIMALS: usize = 2;

/// A whole number at the start of `text`, and the text after it. A decimal point ends it.
#[inline]
pub fn count(text: &str) -> Option<(u64, &str)> {
    let mut count = 0_u64;
    let mut length = 0;
    for byte in text.bytes() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        count = count.wrapping_mul(10).wrapping_add(u64::from(digit));
        length += 1;
    }
    let rest = text.get(length..)?;
    if rest.as_bytes().first() == Some(&b',')
        && let Some((value, rest)) = grouped(text.get(..length)?, rest)
    {
        return Some((floor(value)?, rest));
    }
    // A longer number does not fit into `u64`.
    (1..=19).contains(&length).then_some((count, rest))
}

/// A whole number that may be scaled, as in `1.2k`, and the text after it.
pub fn scaled_count(text: &str) -> Option<(u64, &str)> {
    if let Some((count, rest)) = count(text)
        && !rest.starts_with(['.', 'k', 'K', 'M', 'G', 'T'])
    {
        return Some((count, rest));
    }
    let (value, rest) = number(text)?;
    let (value, rest) = scaled(value, rest);
    Some((floor(value)?, rest))
}

/// Whether a number may end before `rest`.
#[inline]
pub fn ends_before(rest: &str) -> bool {
    let mut next = rest.bytes();
    match next.next() {
        None => true,
        Some(b'.' | b',' | b':' | b'-' | b'/') => !next.next().is_some_and(|b| b.is_ascii_digit()),
        Some(b'%' | b'_') => false,
        Some(byte) => !byte.is_ascii_alphanumeric(),
    }
}

/// `text` without the white space at its start.
#[inline]
pub fn spaces(text: &str) -> &str {
    if text.as_bytes().first().is_some_and(|byte| *byte > b' ') {
        return text;
    }
    let length = text.bytes().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    text.get(length..).unwrap_or(text)
}

/// The parts of `text` between commas followed by a space.
pub fn listed(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let (part, after) = first_listed(rest?);
        rest = after;
        Some(part)
    })
}

/// The text before the first comma followed by a space, and the text after both.
pub fn first_listed(text: &str) -> (&str, Option<&str>) {
    let bytes = text.as_bytes();
    let mut commas = memchr::memchr_iter(b',', bytes);
    let comma = commas.find(|at| bytes.get(at + 1) == Some(&b' '));
    let split = comma.and_then(|at| Some((text.get(..at)?, text.get(at + 2..)?)));
    split.map_or((text, None), |(part, rest)| (part, Some(rest)))
}

fn scaled(value: f64, rest: &str) -> (f64, &str) {
    let factor = match rest.as_bytes().first() {
        Some(b'k' | b'K') => 1e3,
        Some(b'M') => 1e6,
        Some(b'G' | b'B') => 1e9,
        Some(b'T') => 1e12,
        _ => return (value, rest),
    };
    (value * factor, rest.get(1..).unwrap_or(rest))
}

fn sign(text: &str) -> (bool, &str) {
    match text.as_bytes().first() {
        Some(b'0'..=b'9' | b'.') | None => (false, text),
        Some(b'-') => (true, text.get(1..).unwrap_or(text)),
        Some(b'+') => (false, text.get(1..).unwrap_or(text)),
        Some(_) => text.strip_prefix('\u{2212}').map_or((false, text), |rest| (true, rest)),
    }
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// The length of the unsigned plain number at the start of `text`; 0 if there is none.
fn extent(text: &str) -> usize {
    let whole = digits(text);
    let after = text.get(whole..).unwrap_or_default();
    let fraction = after.strip_prefix('.').map(digits);
    if whole + fraction.unwrap_or(0) == 0 {
        return 0;
    }
    let length = whole + fraction.map_or(0, |digits| digits + 1);
    let rest = text.get(length..).unwrap_or_default();
    // Julia writes `2.5f0` for a number of single precision.
    let is_single = fraction.is_some_and(|digits| digits > 0);
    length
        + exponent(rest, 'e').max(exponent(rest, 'E')).max(if is_single {
            exponent(rest, 'f')
        } else {
            0
        })
}

/// The length of the exponent after `mark` at the start of `text`; 0 if there is none.
fn exponent(text: &str, mark: char) -> usize {
    let Some(after) = text.strip_prefix(mark) else { return 0 };
    let power = after.strip_prefix(['+', '-']).unwrap_or(after);
    let digits = digits(power);
    if digits == 0 { 0 } else { text.len() - power.len() + digits }
}

/// `2,345.6`: digits followed by groups of three.
fn grouped<'a>(first: &str, rest: &'a str) -> Option<(f64, &'a str)> {
    if !rest.starts_with(',') || first.starts_with('0') || !(1..=3).contains(&first.len()) {
        return None;
    }
    let mut all = first.to_owned();
    let mut rest = rest;
    while let Some(group) = rest.strip_prefix(',')
        && digits(group) == 3
        && let Some((three, after)) = group.split_at_checked(3)
    {
        all.push_str(three);
        rest = after;
    }
    if all.len() == first.len() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if let Some(fraction) = rest.strip_prefix('.') {
        let (fraction, after) = fraction.split_at_checked(digits(fraction))?;
        return Some((format!("{all}.{fraction}").parse().ok()?, after));
    }
    Some((all.parse().ok()?, rest))
}

fn word(text: &str) -> Option<(f64, &str)> {
    for (word, value) in [("nan", f64::NAN), ("infinity", f64::INFINITY), ("inf", f64::INFINITY)] {
        if let Some((start, rest)) = text.split_at_checked(word.len())
            && start.eq_ignore_ascii_case(word)
            && !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_')
        {
            return Some((value, rest));
        }
    }
    None
}

/// What the C library of Windows prints for a number that is not finite, with the digits that fill it up.
fn of_windows(text: &str) -> Option<(f64, &str)> {
    let name = text.strip_prefix("1.#")?;
    let names = [("QNAN", f64::NAN), ("SNAN", f64::NAN), ("IND", f64::NAN), ("INF", f64::INFINITY)];
    let (value, rest) =
        names.into_iter().find_map(|(word, value)| Some((value, name.strip_prefix(word)?)))?;
    Some((value, rest.trim_start_matches('0')))
}

#[cfg(test)]
mod tests;
