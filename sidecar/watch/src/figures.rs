//! Figures as people read them, in the form of the job's page; an unknown value is a dash.

/// What stands for an unknown value.
pub(crate) const UNKNOWN: &str = "–";

/// A loss, by its leading digits.
pub(crate) fn number(value: Option<f64>) -> String {
    let Some(value) = value.filter(|value| value.is_finite()) else { return UNKNOWN.to_owned() };
    let size = value.abs();
    if size > 0.0 && !(1e-4..1e7).contains(&size) {
        return format!("{value:.2e}");
    }
    let digits = [(1000.0, 0), (100.0, 1), (10.0, 2), (1.0, 3), (0.1, 4), (0.01, 5), (0.001, 6)];
    let fits = digits.iter().find(|(least, _)| size >= *least);
    let digits = if size > 0.0 { fits.map_or(7, |(_, digits)| *digits) } else { 0 };
    format!("{value:.digits$}")
}

/// The same without zeros at its end.
pub(crate) fn short(value: Option<f64>) -> String {
    let text = number(value);
    if text.contains('.') && !text.contains('e') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A part of a whole.
pub(crate) fn percent(part: f64) -> String {
    if part.is_finite() { format!("{:.1} %", 100.0 * part) } else { UNKNOWN.to_owned() }
}

/// A count, with a space between thousands.
pub(crate) fn whole(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A short time in seconds.
pub(crate) fn duration(seconds: Option<f64>) -> String {
    let known = seconds.filter(|seconds| seconds.is_finite());
    match known {
        None => UNKNOWN.to_owned(),
        Some(seconds) if seconds >= 1.0 || seconds <= 0.0 => format!("{} s", number(known)),
        Some(seconds) if seconds >= 1e-3 => format!("{} ms", number(Some(seconds * 1e3))),
        Some(seconds) => format!("{} µs", number(Some(seconds * 1e6))),
    }
}

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// A long time in seconds, in its two largest units.
pub(crate) fn span(seconds: f64) -> String {
    // A time beyond any calendar comes from a job that reports nonsense.
    if !seconds.is_finite() || seconds > 1e12 {
        return UNKNOWN.to_owned();
    }
    let rounded = std::time::Duration::try_from_secs_f64(seconds.max(0.0).round());
    let all = rounded.unwrap_or_default().as_secs();
    let (large, large_name, small, small_name) = match all {
        0..MINUTE => return format!("{all} s"),
        MINUTE..HOUR => (MINUTE, "min", 1, "s"),
        HOUR..DAY => (HOUR, "h", MINUTE, "min"),
        _ => (DAY, "d", HOUR, "h"),
    };
    let (many, over) = (all / large, all % large / small);
    if over == 0 {
        format!("{many} {large_name}")
    } else {
        format!("{many} {large_name} {over} {small_name}")
    }
}

/// A count and its noun.
pub(crate) fn plural(count: u64, one: &str, more: &str) -> String {
    format!("{} {}", whole(count), if count == 1 { one } else { more })
}

/// The nearest number to a count.
pub(crate) fn float(count: u64) -> f64 {
    let half = |bits: u64| f64::from(u32::try_from(bits & 0xffff_ffff).unwrap_or(u32::MAX));
    half(count >> 32) * 4_294_967_296.0 + half(count)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn figures_keep_their_leading_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.000_01, "1.00e-5"),
            (0.000_5, "0.0005000"),
            (0.31, "0.3100"),
            (-118.25, "-118.2"),
            (54_321.0, "54321"),
            (2.5e7, "2.50e7"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(number(Some(value)), text);
        }
        assert_eq!((short(Some(120.0)), short(Some(0.5))), ("120".into(), "0.5".into()));
        assert_eq!(
            (whole(0), whole(46_900), whole(1_234_567)),
            ("0".into(), "46 900".into(), "1 234 567".into())
        );
        assert_eq!(percent(0.4812), "48.1 %");
        let times = [Some(2.5), Some(0.031), Some(4.2e-5), Some(0.0), None].map(duration);
        assert_eq!(times, ["2.500 s", "31.00 ms", "42.00 µs", "0 s", "–"]);
        assert_eq!(
            plural(1, "batch", "batches") + &plural(2, "batch", "batches"),
            "1 batch2 batches"
        );
    }

    #[test]
    fn long_times_have_two_units() {
        for (seconds, text) in [
            (-3.0, "0 s"),
            (59.4, "59 s"),
            (60.0, "1 min"),
            (125.0, "2 min 5 s"),
            (3_600.0, "1 h"),
            (7_290.0, "2 h 1 min"),
            (90_000.0, "1 d 1 h"),
            (f64::INFINITY, "–"),
        ] {
            assert_eq!(span(seconds), text);
        }
    }

    proptest! {
        #[test]
        fn any_number_is_written_briefly(value in any::<f64>(), count in any::<u64>()) {
            for text in [number(Some(value)), short(Some(value)), duration(Some(value)), span(value), whole(count)] {
                prop_assert!(!text.is_empty() && text.chars().count() <= 27, "{}", text);
            }
            prop_assert!(float(count) >= 0.0);
        }
    }
}
