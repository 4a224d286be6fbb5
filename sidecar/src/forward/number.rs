//! Numbers and times as texts that line formats accept.

use std::time::{Duration, UNIX_EPOCH};

/// Beyond these, a number is written with an exponent: digits would be many.
const PLAIN: std::ops::Range<f64> = 1e-4..1e15;

/// A finite number; with an exponent such as `1.5e-7` if it is very small or very large.
pub(super) fn number(value: f64) -> String {
    if value == 0.0 || PLAIN.contains(&value.abs()) {
        format!("{value}")
    } else {
        format!("{value:e}")
    }
}

/// Unix seconds as RFC 3339 in UTC, with nothing after the seconds.
pub(super) fn to_the_second(unix: f64) -> String {
    let time = UNIX_EPOCH + Duration::try_from_secs_f64(unix).unwrap_or_default();
    humantime::format_rfc3339_seconds(time).to_string()
}

/// The same with milliseconds.
pub(super) fn to_the_millisecond(unix: f64) -> String {
    let time = UNIX_EPOCH + Duration::try_from_secs_f64(unix).unwrap_or_default();
    humantime::format_rfc3339_millis(time).to_string()
}
