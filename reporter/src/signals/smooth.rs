//! The loss without its noise: a line through as many recent losses as agree with one line.

use super::series::{Point, Series, usual};

/// Two estimates agree if they differ by at most this many standard errors.
const AGREE: f64 = 2.0;
/// A residual beyond this many standard deviations gets less weight (Huber, Robust Statistics, 1981).
const OUTLIER: f64 = 2.5;
/// The fewest points for a line.
const FEWEST: usize = 3;

/// A loss without its noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Smooth {
    /// The level at the end of the record.
    pub(crate) level: f64,
    /// Its change with one step; `None` while there are too few points.
    pub(crate) slope: Option<f64>,
    /// The smallest and the largest of the points that it was made from.
    range: (f64, f64),
    /// How far the level may have gone on since the last of them.
    reach: f64,
}

/// A line at the end of the record.
#[derive(Clone, Copy, Debug)]
struct Line {
    level: f64,
    slope: f64,
    error: f64,
}

impl Smooth {
    /// Fits a line to the last points: to ever more of them, as long as the resulting levels all agree
    /// within their errors. So a steep or bent curve is averaged over few losses, a flat one over many.
    ///
    /// The intersection of confidence intervals: Goldenshluger and Nemirovski, On spatially
    /// adaptive estimation of nonparametric regression, Math. Methods of Statistics 6 (1997).
    pub(crate) fn new(series: &Series) -> Option<Self> {
        let points = &series.points;
        let unit = series.unit;
        // Scatter depends on the level, so that of the early losses is not used.
        let scatters: Vec<(f64, f64)> =
            series.scattered(0.3).map(|point| (point.scatter, point.triples)).collect();
        let scatter = usual(&scatters).unwrap_or(0.0);
        let mut chosen: Option<(Line, &[Point])> = None;
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        let mut size = FEWEST.min(points.len());
        while size >= FEWEST {
            let window = points.get(points.len() - size..).unwrap_or_default();
            let Some(line) = line(window, series.end, scatter) else { break };
            low = low.max(line.level - AGREE * line.error);
            high = high.min(line.level + AGREE * line.error);
            if low > high {
                break;
            }
            chosen = Some((line, window));
            if size == points.len() {
                break;
            }
            size = (size + size.div_ceil(4)).min(points.len());
        }
        let (level, slope, from) = match chosen {
            Some((line, window)) => (line.level, Some(line.slope * unit), window),
            None => (mean(points)?, None, points.as_slice()),
        };
        let since = from.last().map_or(0.0, |last| series.end - last.x);
        let reach = slope.map_or(0.0, |slope| (slope * since).abs());
        let smooth = Self { level: level * unit, slope, range: range(from, unit), reach };
        let fine = smooth.level.is_finite() && smooth.slope.is_none_or(f64::is_finite);
        fine.then_some(smooth)
    }

    /// The level, kept among the losses; `best` is the best single one.
    ///
    /// Below a steep or bent curve a line leads beyond all losses, even below zero. So the level stays
    /// among the points of the line. Only towards `best` may it go on from the last of them.
    pub(crate) fn level_among(&self, best: Option<f64>) -> f64 {
        let best = best.filter(|best| best.is_finite());
        let (low, high) = self.range;
        let low = best.map_or(low, |best| best.max(low - self.reach).min(low));
        let high = best.map_or(high, |best| best.min(high + self.reach).max(high));
        self.level.max(low).min(high)
    }
}

/// The smallest and the largest of the points.
fn range(points: &[Point], unit: f64) -> (f64, f64) {
    points.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), point| {
        (low.min(point.y * unit), high.max(point.y * unit))
    })
}

/// The mean of all losses.
fn mean(points: &[Point]) -> Option<f64> {
    let total: f64 = points.iter().map(|point| point.count).sum();
    (total > 0.0).then(|| points.iter().map(|point| point.count / total * point.y).sum())
}

/// The line through `points`, at `end`. It is fitted twice: the second time, points far from the
/// first line get less weight.
fn line(points: &[Point], end: f64, scatter: f64) -> Option<Line> {
    let first = weighted_line(points, end, |point| point.count)?;
    let line = weighted_line(points, end, |point| {
        let off = point.y - (first.level + first.slope * (point.x - end));
        let limit = OUTLIER * scatter / point.count.sqrt();
        if off.abs() > limit { point.count * (limit / off.abs()) } else { point.count }
    })
    .unwrap_or(first);
    Some(Line { error: line.error * scatter, ..line })
}

/// Weighted least squares around `end`. The error is that of the level for a scatter of 1.
fn weighted_line(points: &[Point], end: f64, weight: impl Fn(&Point) -> f64) -> Option<Line> {
    let span = end - points.first()?.x;
    let (mut w, mut wx, mut wxx, mut wy, mut wxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for point in points {
        let (weight, x) = (weight(point), (point.x - end) / span);
        w += weight;
        wx += weight * x;
        wxx += weight * x * x;
        wy += weight * point.y;
        wxy += weight * x * point.y;
    }
    let determinant = w * wxx - wx * wx;
    let line = Line {
        level: (wxx * wy - wx * wxy) / determinant,
        slope: (w * wxy - wx * wy) / determinant / span,
        error: (wxx / determinant).sqrt(),
    };
    let sound = determinant > 1e-12 * w * wxx;
    (sound && line.level.is_finite() && line.slope.is_finite()).then_some(line)
}

#[cfg(test)]
mod tests;
