//! The losses of a [`History`] as points to fit curves to.

use super::history::History;

/// A sample's estimate of the scatter is clamped to this multiple of the median.
const OUTLIER: f64 = 4.0;

/// A bucket's losses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    /// Their position, in steps since the start of the record.
    pub(crate) x: f64,
    /// Their mean, in units of [`Series::unit`].
    pub(crate) y: f64,
    /// Their number.
    pub(crate) count: f64,
    /// Standard deviation of one loss around its neighbours, in units of [`Series::unit`].
    pub(crate) scatter: f64,
    /// Number of estimates whose mean [`Point::scatter`] is.
    pub(crate) triples: f64,
}

/// The losses of a job, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) points: Vec<Point>,
    /// A power of two, so that scaling by it is exact. Squares of scaled values are finite, however
    /// large the losses are.
    pub(crate) unit: f64,
    /// The end of the record, in steps since its start.
    pub(crate) end: f64,
}

impl Series {
    /// The losses of `history`; `None` without any.
    pub(crate) fn new(history: &History) -> Option<Self> {
        let buckets = || history.buckets().iter().filter(|bucket| bucket.count > 0.0);
        let unit = power_of_two(buckets().map(|bucket| bucket.mean.abs()).reduce(f64::max)?);
        let points = buckets()
            .map(|bucket| Point {
                x: bucket.middle(),
                y: bucket.mean / unit,
                count: bucket.count,
                scatter: bucket.scatter / unit,
                triples: bucket.triples,
            })
            .collect();
        Some(Self { points, unit, end: history.buckets().last()?.to })
    }

    /// How many losses there are.
    pub(crate) fn losses(&self) -> f64 {
        self.points.iter().map(|point| point.count).sum()
    }

    /// The points from `part` of the steps on that have an estimate of the scatter.
    pub(crate) fn scattered(&self, part: f64) -> impl Iterator<Item = &Point> {
        let from = part * self.end;
        self.points.iter().filter(move |point| point.x >= from && point.triples > 0.0)
    }
}

/// The weighted mean of `(value, weight)` with large outliers clamped; `None` without any.
pub(crate) fn usual(values: &[(f64, f64)]) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().map(|(value, _)| *value).collect();
    sorted.sort_by(f64::total_cmp);
    let median = sorted.get(sorted.len() / 2)?;
    // If most are 0, the others are the only information.
    let most = if *median > 0.0 { OUTLIER * median } else { f64::INFINITY };
    let total: f64 = values.iter().map(|(_, weight)| weight).sum();
    Some(values.iter().map(|(value, weight)| value.min(most) * (weight / total)).sum())
}

/// The largest power of two that is not above `value`; 1 for 0 and for numbers too small to matter.
fn power_of_two(value: f64) -> f64 {
    /// The exponent bits of a 64-bit floating-point number.
    const EXPONENT: u64 = 0x7ff0_0000_0000_0000;
    let power = f64::from_bits(value.to_bits() & EXPONENT);
    if power.is_finite() && power > 0.0 { power } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_two() {
        for (value, unit) in
            [(1.0, 1.0), (0.3, 0.25), (550.0, 512.0), (0.0, 1.0), (1e-320, 1.0), (f64::NAN, 1.0)]
        {
            assert_eq!(power_of_two(value).to_bits(), f64::to_bits(unit), "{value}");
        }
    }

    #[test]
    fn one_outlier_hardly_moves_the_usual_value() {
        let mut values = vec![(1.0, 2.0); 9];
        values.push((1e9, 2.0));
        let usual_one = usual(&values).unwrap();
        assert!((usual_one - 1.3).abs() < 1e-9, "{usual_one}");
        assert_eq!(usual(&[]), None);
    }
}
