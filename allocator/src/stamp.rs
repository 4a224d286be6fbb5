//! Times as the engine and people write them.
//!
//! Containers, samples and the bench itself are on one machine, so Unix seconds relate them all.

use std::time::{Duration, UNIX_EPOCH};

/// A stamp as the engine writes it, as Unix seconds.
pub(crate) fn parse(rfc3339: &str) -> Option<f64> {
    let time = humantime::parse_rfc3339(rfc3339).ok()?;
    time.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs_f64())
}

/// Unix seconds as a date in UTC, to the second.
pub(crate) fn date(unix: f64) -> String {
    let since = Duration::try_from_secs_f64(unix).unwrap_or_default();
    humantime::format_rfc3339_seconds(UNIX_EPOCH + since).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engines_stamp_is_read_to_the_fraction_of_a_second() {
        let read = parse("2026-11-21T12:16:16.25Z").expect("a stamp");
        assert!((read - 1_795_263_376.25).abs() < 1e-6, "{read}");
        assert_eq!(date(read), "2026-11-21T12:16:16Z");
    }

    #[test]
    fn what_is_no_time_after_1970_is_none() {
        assert_eq!(parse("yesterday"), None);
        assert_eq!(parse("0001-01-01T00:00:00Z"), None, "the engine's way to say never");
    }
}
