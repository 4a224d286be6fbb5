//! Round numbers along an axis.

/// Steps between marks of a time axis, in seconds.
const TIME_STEPS: [f64; 12] =
    [1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0];

/// At least the number of powers of ten that an `f64` can have.
const DECADES: u32 = 640;

/// More marks would overlap.
const MAX_MARKS: u32 = 10;

/// Marks from 0 to `end` seconds, at round distances.
pub(crate) fn time_marks(end: f64) -> Vec<f64> {
    let fits = |step: &f64| end / step <= f64::from(MAX_MARKS);
    let whole_hours = (end / f64::from(MAX_MARKS) / 3600.0).ceil() * 3600.0;
    let step = TIME_STEPS.into_iter().find(fits).unwrap_or(whole_hours);
    (0..=MAX_MARKS).map(|mark| f64::from(mark) * step).take_while(|mark| *mark <= end).collect()
}

/// The marks 1, 2 and 5 of each decade that enclose `least` to `most`, both above 0, ascending.
/// Over more than three decades only the 1.
pub(crate) fn log_marks(least: f64, most: f64) -> Vec<f64> {
    let decades = most.log10() - least.log10();
    let within: &[f64] = if decades > 3.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let first = least.log10().floor();
    let count = (most.log10().ceil() - first).max(0.0);
    let marks: Vec<f64> = (0..=DECADES)
        .map(f64::from)
        .take_while(|decade| *decade <= count)
        .flat_map(|decade| within.iter().map(move |mark| mark * 10_f64.powf(first + decade)))
        .collect();
    // Rounding must not drop a mark that the range touches.
    let near = 1.0 + 1e-9;
    let from = marks.iter().rposition(|mark| *mark <= least * near).unwrap_or(0);
    let to = marks.iter().position(|mark| mark * near >= most).unwrap_or(marks.len());
    marks.into_iter().take(to + 1).skip(from).collect()
}

/// Round numbers at equal distances, from at most `least` to the last one that is at most `most`.
pub(crate) fn even_marks(least: f64, most: f64) -> Vec<f64> {
    let range = most - least;
    if !(range > 0.0 && range.is_finite()) {
        return vec![least];
    }
    let rough = range / f64::from(MAX_MARKS / 2);
    let decade = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0].into_iter().find(|step| step * decade >= rough * (1.0 - 1e-9));
    let step = step.unwrap_or(10.0) * decade;
    let first = (least / step + 1e-9).floor();
    let marks = (0..=MAX_MARKS).map(|mark| (first + f64::from(mark)) * step);
    marks.take_while(|mark| *mark <= most + 1e-9 * range).collect()
}

/// A number for an axis, without trailing zeros.
pub(crate) fn mark_text(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_marked_at_round_distances() {
        assert_eq!(time_marks(97.0), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0]);
        assert_eq!(time_marks(130.0).len(), 7);
        assert_eq!(time_marks(100_000.0).last(), Some(&(9.0 * 10_800.0)));
    }

    #[test]
    fn even_marks_begin_below_and_are_round() {
        assert_eq!(even_marks(0.0, 394.0), [0.0, 100.0, 200.0, 300.0]);
        assert_eq!(even_marks(0.0, 1.5), [0.0, 0.5, 1.0, 1.5]);
        assert_eq!(even_marks(197.0, 268.0), [180.0, 200.0, 220.0, 240.0, 260.0]);
        assert_eq!(even_marks(3.0, 3.0), [3.0]);
        assert_eq!(even_marks(0.0, f64::NAN), [0.0]);
    }

    #[test]
    fn log_marks_enclose_the_values() {
        assert_eq!(log_marks(3.5, 100.0), [2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(log_marks(0.02, 130.0), [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(log_marks(10.0, 10.0), [10.0]);
    }

    #[test]
    fn numbers_have_no_trailing_zeros() {
        assert_eq!([100.0, 0.05, 0.0].map(mark_text), ["100", "0.05", "0"]);
    }
}
