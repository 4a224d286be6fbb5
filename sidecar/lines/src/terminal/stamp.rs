//! Timestamps as loggers print them.

/// A date and time at the start of `text`, and the text after it. The time is in Unix seconds, or
/// `None` without a year or a time zone.
pub fn stamp(text: &str) -> Option<(Option<f64>, &str)> {
    let (days, rest) = date(text).or_else(|| named_date(text))?;
    let rest = rest.strip_prefix(['T', 't', '-', ',', '_']).unwrap_or(rest).trim_start_matches(' ');
    let short = || days.and_then(|_| short_time(rest));
    let (seconds, rest) = time(rest).or_else(|| minutes(rest)).or_else(short)?;
    let (offset, rest) = zone(rest);
    let at = days.zip(offset).map(|(days, offset)| f64::from(days) * 86_400.0 + seconds - offset);
    Some((at, rest))
}

/// Names of months, and of days of the week.
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// Whether `text` may begin with the name of a month or of a day of the week.
#[inline]
pub(super) fn may_be_named(text: &str) -> bool {
    let is_end = text.as_bytes().get(3).is_some_and(|byte| matches!(byte, b' ' | b','));
    is_end && text.get(..3).is_some_and(|name| MONTHS.contains(&name) || WEEKDAYS.contains(&name))
}

/// A time of day without seconds, such as `10:00`. It ends at white space.
fn minutes(text: &str) -> Option<(f64, &str)> {
    let (hours, rest) = digits(text, 2)?;
    let (minutes, rest) = digits(rest.strip_prefix(':')?, 2)?;
    let valid = hours <= 24 && minutes <= 59 && rest.starts_with([' ', '\t']);
    valid.then(|| (f64::from(hours * 3600 + minutes * 60), rest))
}

/// A time of day such as `10:00:00.123` in seconds, and the text after it.
pub(super) fn time(text: &str) -> Option<(f64, &str)> {
    let (hours, rest) = digits(text, 2)?;
    time_after(hours, rest)
}

/// Whether `text` is a time in hours, minutes and seconds: `0:01:23`.
#[cold]
pub(super) fn is_duration(text: &str) -> bool {
    let hours = text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = text.get(hours..).unwrap_or_default();
    (1..=MAX_HOURS).contains(&hours) && time_after(0, rest).is_some_and(|(_, rest)| rest.is_empty())
}

/// Maximum number of digits of the hours.
const MAX_HOURS: usize = 4;

/// A time of day whose hour has one digit: `9:00:00.123`. Without a date it may be a duration.
#[cold]
fn short_time(text: &str) -> Option<(f64, &str)> {
    let (hours, rest) = digits(text, 1)?;
    time_after(hours, rest)
}

/// The time of day whose minutes and seconds are at the start of `rest`.
fn time_after(hours: i32, rest: &str) -> Option<(f64, &str)> {
    let (minutes, rest) = digits(rest.strip_prefix(':')?, 2)?;
    let (seconds, rest) = digits(rest.strip_prefix(':')?, 2)?;
    if hours > 24 || minutes > 59 || seconds > 60 {
        return None;
    }
    let whole = f64::from(hours * 3600 + minutes * 60 + seconds);
    let Some(fraction) = rest.strip_prefix(['.', ',']) else { return Some((whole, rest)) };
    let (fraction, rest) = part_of_one(fraction);
    Some((whole + fraction, rest))
}

/// The digits after a decimal point as a fraction, and the text after them.
fn part_of_one(text: &str) -> (f64, &str) {
    let (mut digits, mut scale, mut length) = (0_u32, 1_u32, 0);
    for byte in text.bytes().take_while(u8::is_ascii_digit) {
        length += 1;
        // Digits after the ninth are finer than any clock and ignored.
        if length <= 9 {
            digits = digits * 10 + u32::from(byte - b'0');
            scale *= 10;
        }
    }
    (f64::from(digits) / f64::from(scale), text.get(length..).unwrap_or_default())
}

/// Days since 1970-01-01 from `2026-01-31`, `2026/01/31`, `20260131` or `01/31/2026`, and the text
/// after it. `01/31` and `01-31` have no year, and in `26/01/31` its place is not certain.
fn date(text: &str) -> Option<(Option<i32>, &str)> {
    if let Some((year, rest)) = digits(text, 4) {
        let separator =
            rest.get(..1).filter(|first| ["-", "/"].contains(first)).unwrap_or_default();
        let (month, rest) = digits(rest.strip_prefix(separator)?, 2)?;
        let (day, rest) = digits(rest.strip_prefix(separator)?, 2)?;
        // Digits alone are a date only before a time.
        let is_date = !separator.is_empty() || rest.starts_with(['-', 'T']);
        return Some((Some(days(year, month, day)?), rest)).filter(|_| is_date);
    }
    let (month, rest) = digits(text, 2)?;
    let separator = if rest.starts_with('-') { '-' } else { '/' };
    let (day, rest) = digits(rest.strip_prefix(separator)?, 2)?;
    match rest.strip_prefix(separator) {
        Some(rest) => match digits(rest, 4) {
            Some((year, rest)) => Some((Some(days(year, month, day)?), rest)),
            None => digits(rest, 2)
                .filter(|(_, rest)| rest.starts_with(' '))
                .map(|(_, rest)| (None, rest)),
        },
        None => days(1972, month, day).map(|_| (None, rest)).filter(|_| rest.starts_with(' ')),
    }
}

/// `May 01 10:00:00`, `01 May`, `Fri May  1`: dates without a year.
fn named_date(text: &str) -> Option<(Option<i32>, &str)> {
    let weekday = WEEKDAYS.iter().find_map(|name| text.strip_prefix(name));
    let text = weekday.map_or(text, |rest| rest.trim_start_matches([',', ' ']));
    let day = |text| {
        let text = str::trim_start_matches(text, ' ');
        let (day, rest) = digits(text, 2).or_else(|| digits(text, 1))?;
        (1..=31).contains(&day).then_some(rest)
    };
    let month = |text| {
        let text = str::trim_start_matches(text, ' ');
        MONTHS.iter().find_map(|name| text.strip_prefix(name))
    };
    let rest = month(text).and_then(day).or_else(|| day(text).and_then(month))?;
    // `May 18, 2026, 10:00:00`.
    let year = rest.strip_prefix(", ").and_then(|rest| digits(rest, 4));
    if let Some((_, rest)) = year.filter(|(_, rest)| rest.starts_with([' ', ','])) {
        return Some((None, rest));
    }
    Some((None, rest)).filter(|_| rest.starts_with(' '))
}

/// Days since 1970-01-01 in the Gregorian calendar.
fn days(year: i32, month: i32, day: i32) -> Option<i32> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // In a year that begins in March, the leap day is at the end and months average 30.6 days.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    Some(year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - 719_468)
}

/// The offset from UTC in seconds, and the text after it.
fn zone(text: &str) -> (Option<f64>, &str) {
    if let Some(rest) = text.strip_prefix(['Z', 'z']) {
        return (Some(0.0), rest);
    }
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    let offset = text.strip_prefix(['+', '-']).and_then(|rest| {
        let (hours, rest) = digits(rest, 2)?;
        let (minutes, rest) = digits(rest.strip_prefix(':').unwrap_or(rest), 2)?;
        Some((sign * f64::from(hours * 3600 + minutes * 60), rest))
    });
    offset.map_or((None, text), |(offset, rest)| (Some(offset), rest))
}

/// A number of exactly `length` digits, and the text after it.
#[inline]
fn digits(text: &str, length: usize) -> Option<(i32, &str)> {
    let mut number = 0;
    for byte in text.as_bytes().get(..length)? {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + i32::from(digit);
    }
    Some((number, text.get(length..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamp_is_absolute_if_it_names_its_zone() {
        for (text, at, rest) in [
            ("1970-01-01T00:00:00Z", Some(0.0), ""),
            ("2000-02-29T12:00:00.5Z x", Some(951_825_600.5), " x"),
            ("2026-01-01T10:00:00.123456789+02:00 x", Some(1_767_254_400.123_456_8), " x"),
            ("2026-01-01T10:00:00-0530", Some(1_767_281_400.0), ""),
            ("2026-01-01 10:00:00,123 - INFO", None, " - INFO"),
            ("2026/12/31 23:59:60", None, ""),
            ("01/31/2026 10:00:00 - x", None, " - x"),
            ("04/21 21:03:52 - x", None, " - x"),
            ("20260101-10:00:00 x", None, " x"),
            ("2026-01-01_10:00:00.25 x", None, " x"),
            ("2026-01-01 9:08:07.123 x", None, " x"),
            ("2026-01-01T9:00:00Z x", Some(1_767_258_000.0), " x"),
            ("26/01/31 10:00:00 x", None, " x"),
            ("01/31/26 10:00:00 x", None, " x"),
            ("26-01-31 10:00:00.123 - x", None, " - x"),
            ("01-31 10:00:00 x", None, " x"),
            ("May 01 10:00:00 node x", None, " node x"),
            ("Fri May  1 10:00:00 x", None, " x"),
            ("May 1, 2026, 10:00:00: x", None, ": x"),
            ("May 1, 2026 10:00:00 x", None, " x"),
            ("05 Aug 02:16    INFO", None, "    INFO"),
        ] {
            assert_eq!(stamp(text), Some((at, rest)), "{text}");
        }
        for text in [
            "",
            "2026",
            "2026-13-01 10:00:00",
            "2026-01-01",
            "20260101 10:00:00",
            "12/31 0:01:23",
            "2026-01-01 9:61:00",
            "26/01/31",
            "26-01-31",
            "26-01/31 10:00:00",
            "13-31 10:00:00",
            "26/01/310:00:00",
            "é",
        ] {
            assert_eq!(stamp(text), None, "{text}");
        }
    }
}
