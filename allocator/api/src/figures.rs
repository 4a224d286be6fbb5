//! Figures as people read them; an unknown value is a dash.

use std::fmt::Display;
use std::time::Duration;

use paceline_policy::unit::counter;

/// A number with all its digits, and without long rows of zeros.
pub fn exact(x: f64) -> String {
    let size = x.abs();
    if (1e-6..1e15).contains(&size) || size < f64::MIN_POSITIVE {
        format!("{x}")
    } else {
        format!("{x:e}")
    }
}

/// So many things, in words.
pub fn counted<N: Copy + Display + From<u8> + PartialEq>(count: N, thing: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {thing}{plural}")
}

/// A loss or a score, by its leading digits.
pub fn number(value: Option<f64>) -> String {
    value.map_or_else(dash, |value| {
        let size = value.abs();
        if size >= 1e6 || (size > 0.0 && size < 1e-3) {
            format!("{value:.2e}")
        } else if size >= 1000.0 {
            format!("{value:.0}")
        } else if size >= 10.0 {
            format!("{value:.2}")
        } else {
            format!("{value:.4}")
        }
    })
}

/// A share of the node.
pub fn share(value: Option<f64>) -> String {
    value.map_or_else(dash, |value| format!("{:.1} %", value * 100.0))
}

/// A short time.
pub fn latency(seconds: Option<f64>) -> String {
    seconds.map_or_else(dash, |seconds| {
        if seconds < 1.0 {
            format!("{:.1} ms", seconds * 1000.0)
        } else {
            format!("{seconds:.2} s")
        }
    })
}

/// A long time, in whole seconds.
pub fn span(seconds: f64) -> String {
    let whole = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default().as_secs();
    humantime::format_duration(Duration::from_secs(whole)).to_string()
}

/// The time from `now` until a moment.
pub fn until(moment: Option<f64>, now: f64) -> String {
    moment.map_or_else(dash, |moment| span(moment - now))
}

/// A moment, in UTC.
pub fn moment(unix: f64) -> String {
    let since = Duration::try_from_secs_f64(unix.max(0.0)).unwrap_or_default();
    let time = std::time::UNIX_EPOCH.checked_add(since);
    // A time beyond the calendar comes from a job that reports nonsense.
    let calendar = time.filter(|_| unix < LAST);
    calendar.map_or_else(dash, |time| humantime::format_rfc3339_seconds(time).to_string())
}

/// The end of the year 9999, in Unix seconds.
const LAST: f64 = 253_402_300_800.0;

/// Steps done, and their percentage of the total.
pub fn steps(step: Option<u64>, total: Option<u64>) -> String {
    match (step, total) {
        (Some(step), Some(total)) if total > 0 => {
            format!("{step} ({:.0} %)", counter(step) / counter(total) * 100.0)
        }
        (Some(step), _) => step.to_string(),
        (None, _) => dash(),
    }
}

fn dash() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_number_has_no_long_row_of_zeros() {
        for (x, text) in [
            (0.0, "0"),
            (-0.3, "-0.3"),
            (120.0, "120"),
            (1e300, "1e300"),
            (-1e15, "-1e15"),
            (1.5e-9, "1.5e-9"),
        ] {
            assert_eq!(exact(x), text);
        }
    }

    #[test]
    fn figures_keep_their_leading_digits() {
        for (value, text) in [
            (0.0, "0.0000"),
            (0.000_12, "1.20e-4"),
            (0.31, "0.3100"),
            (-118.25, "-118.25"),
            (54_321.0, "54321"),
            (2.5e7, "2.50e7"),
        ] {
            assert_eq!(number(Some(value)), text);
        }
        assert_eq!(
            (number(None), share(None), latency(None)),
            ("-".into(), "-".into(), "-".into())
        );
        assert_eq!(share(Some(0.4812)), "48.1 %");
        assert_eq!((latency(Some(0.031)), latency(Some(1.5))), ("31.0 ms".into(), "1.50 s".into()));
        assert_eq!((span(3725.9), span(-1.0)), ("1h 2m 5s".into(), "0s".into()));
        assert_eq!(moment(1_760_000_000.5), "2025-10-09T08:53:20Z");
        assert_eq!((moment(f64::MAX), moment(f64::NAN)), ("-".into(), "-".into()));
        assert_eq!(steps(Some(50), Some(200)), "50 (25 %)");
        assert_eq!((steps(Some(50), None), steps(None, Some(1))), ("50".into(), "-".into()));
    }
}
