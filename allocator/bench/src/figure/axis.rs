use super::marked::Marked;
use super::scale::{even_marks, mark_text, time_marks};

/// The part of an axis that stays free beyond the largest value, so that nothing touches its edge.
const FREE: f64 = 0.02;

/// One axis of a picture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    /// The measured quantity and its unit.
    pub(crate) title: String,
    /// The values that are marked, ascending.
    pub(crate) marks: Vec<f64>,
    /// Room beyond the last mark, in the axis's unit.
    pub(crate) above: f64,
    /// Whether the axis is logarithmic. All values must then be above 0.
    pub(crate) log: bool,
}

impl Axis {
    /// 0 to 100 %.
    pub(crate) fn percent(title: &str, above: f64) -> Self {
        let marks = vec![0.0, 25.0, 50.0, 75.0, 100.0];
        Self { title: title.to_owned(), marks, above, log: false }
    }

    /// Time from 0 to `end` seconds.
    pub(crate) fn time(title: &str, end: f64) -> Self {
        Self::reaching(title, time_marks(end), end)
    }

    /// Values from `least` to `most`, with marks at round numbers.
    pub(crate) fn even(title: &str, least: f64, most: f64) -> Self {
        Self::reaching(title, even_marks(least, most), most)
    }

    fn reaching(title: &str, marks: Vec<f64>, most: f64) -> Self {
        let (first, last) = (marks.first(), marks.last());
        let (first, last) = (first.copied().unwrap_or(0.0), last.copied().unwrap_or(0.0));
        let above = (most - last).max(0.0) + FREE * (most - first);
        Self { title: title.to_owned(), marks, above, log: false }
    }

    /// The position of a value on the axis.
    pub(crate) fn position(&self, value: f64) -> f64 {
        if self.log { value.log10() } else { value }
    }

    /// The label of the mark at this position.
    pub(crate) fn text(&self, position: f64) -> String {
        mark_text(if self.log { 10_f64.powf(position) } else { position })
    }

    pub(crate) fn marked(&self) -> Marked {
        let marks: Vec<f64> = self.marks.iter().map(|mark| self.position(*mark)).collect();
        let low = marks.first().copied().unwrap_or(0.0);
        let high = marks.last().copied().unwrap_or(1.0) + self.above;
        Marked { low, high, marks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axis_encloses_its_values() {
        for (least, most) in [(0.0, 394.0), (197.0, 268.0), (0.0, 1.0), (35.9, 36.8), (1e-6, 2e-6)]
        {
            let Marked { low, high, marks } = Axis::even("it", least, most).marked();
            assert!(low <= least && most < high, "{least} to {most}: {low} to {high}");
            assert!((2..=11).contains(&marks.len()), "{least} to {most}: {marks:?}");
        }
    }

    #[test]
    fn log_axis_is_labelled_with_values() {
        let axis = Axis { title: String::new(), marks: vec![1.0, 10.0], above: 0.1, log: true };
        let marked = axis.marked();
        assert_eq!((marked.low, marked.high), (0.0, 1.1));
        assert_eq!(axis.text(1.0), "10");
    }
}
