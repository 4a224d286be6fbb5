//! Dates and times as loggers print them.

/// A date and time at the start of `text`: Unix seconds if it names its time zone; what follows.
pub(crate) fn stamp(text: &str) -> Option<(Option<f64>, &str)> {
    let (days, rest) = date(text)?;
    let rest = rest.strip_prefix(['T', 't']).unwrap_or(rest).trim_start_matches(' ');
    let (seconds, rest) = time(rest)?;
    let (offset, rest) = zone(rest);
    Some((offset.map(|offset| f64::from(days) * 86_400.0 + seconds - offset), rest))
}

/// A time of day such as `10:00:00.123` in seconds; what follows.
pub(super) fn time(text: &str) -> Option<(f64, &str)> {
    let (hours, rest) = digits(text, 2)?;
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

/// The digits behind a point as a part of one; what follows.
fn part_of_one(text: &str) -> (f64, &str) {
    let (mut digits, mut scale, mut length) = (0_u32, 1_u32, 0);
    for byte in text.bytes().take_while(u8::is_ascii_digit) {
        length += 1;
        // More than nine digits are finer than any clock.
        if length <= 9 {
            digits = digits * 10 + u32::from(byte - b'0');
            scale *= 10;
        }
    }
    (f64::from(digits) / f64::from(scale), text.get(length..).unwrap_or_default())
}

/// Days since 1970-01-01 from `2026-01-31`, `2026/01/31` or `01/31/2026`; what follows.
fn date(text: &str) -> Option<(i32, &str)> {
    if let Some((year, rest)) = digits(text, 4) {
        let separator = if rest.starts_with('/') { '/' } else { '-' };
        let (month, rest) = digits(rest.strip_prefix(separator)?, 2)?;
        let (day, rest) = digits(rest.strip_prefix(separator)?, 2)?;
        return Some((days(year, month, day)?, rest));
    }
    let (month, rest) = digits(text, 2)?;
    let (day, rest) = digits(rest.strip_prefix('/')?, 2)?;
    let (year, rest) = digits(rest.strip_prefix('/')?, 4)?;
    Some((days(year, month, day)?, rest))
}

/// Days since 1970-01-01 in the Gregorian calendar.
fn days(year: i32, month: i32, day: i32) -> Option<i32> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // A year that begins in March has its leap day at its end, and months of 30.6 days.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    Some(year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - 719_468)
}

/// The offset from UTC in seconds; what follows.
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

/// A number of exactly `length` digits; what follows.
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
    fn a_stamp_is_absolute_if_it_names_its_zone() {
        for (text, at, rest) in [
            ("1970-01-01T00:00:00Z", Some(0.0), ""),
            ("2000-02-29T12:00:00.5Z x", Some(951_825_600.5), " x"),
            ("2026-01-01T10:00:00.123456789+02:00 x", Some(1_767_254_400.123_456_8), " x"),
            ("2026-01-01T10:00:00-0530", Some(1_767_281_400.0), ""),
            ("2026-01-01 10:00:00,123 - INFO", None, " - INFO"),
            ("2026/12/31 23:59:60", None, ""),
            ("01/31/2026 10:00:00 - x", None, " - x"),
        ] {
            assert_eq!(stamp(text), Some((at, rest)), "{text}");
        }
        for text in ["", "2026", "2026-13-01 10:00:00", "2026-01-01", "20260101 10:00:00", "é"] {
            assert_eq!(stamp(text), None, "{text}");
        }
    }
}
