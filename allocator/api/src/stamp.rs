//! Times as the container engine and people write them.
//!
//! Containers, samples and the bench itself are on one machine, so Unix seconds relate them all.

use std::time::{Duration, UNIX_EPOCH};

/// The container engine's time stamp (RFC 3339) in Unix seconds; `None` for one before 1970.
pub fn parse(rfc3339: &str) -> Option<f64> {
    let (time, ahead) = in_utc(rfc3339)?;
    let time = humantime::parse_rfc3339(&time).ok()?;
    let unix = time.duration_since(UNIX_EPOCH).ok()?.as_secs_f64();
    Some(unix - ahead)
}

/// A stamp as if its clock showed UTC, and by how many seconds that clock is ahead.
fn in_utc(stamp: &str) -> Option<(String, f64)> {
    let at = stamp.find('T').and_then(|t| stamp.get(t..)?.find(['+', '-']).map(|at| t + at));
    let Some(at) = at else { return Some((stamp.to_owned(), 0.0)) };
    let (time, offset) = stamp.split_at_checked(at)?;
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    let seconds = (f64::from(hours.parse::<u8>().ok()?) * 60.0
        + f64::from(minutes.parse::<u8>().ok()?))
        * 60.0;
    Some((format!("{time}Z"), if offset.starts_with('-') { -seconds } else { seconds }))
}

/// Unix seconds as a date in UTC, to the second.
pub fn date(unix: f64) -> String {
    let since = Duration::try_from_secs_f64(unix).unwrap_or_default();
    humantime::format_rfc3339_seconds(UNIX_EPOCH + since).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamp_is_read_to_the_fraction_of_a_second() {
        let read = parse("2026-11-21T12:16:16.25Z").expect("a stamp");
        assert!((read - 1_795_263_376.25).abs() < 1e-6, "{read}");
        assert_eq!(date(read), "2026-11-21T12:16:16Z");
        for same in ["2026-11-21T13:46:16.25+01:30", "2026-11-21T11:16:16.25-01:00"] {
            let other = parse(same).expect("a stamp");
            assert!((other - read).abs() < 1e-6, "{same}: {other}");
        }
        for bad in ["2026-11-21T12:16:16+", "2026-11-21T12:16:16+1", "2026-11-21T12:16:16+99999:00"]
        {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn stamp_that_is_not_a_time_after_1970_is_none() {
        assert_eq!(parse("yesterday"), None);
        assert_eq!(parse("0001-01-01T00:00:00Z"), None, "the engine's way to say never");
    }
}
