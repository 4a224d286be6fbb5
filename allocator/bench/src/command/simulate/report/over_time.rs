//! A trace as stacked amounts over time.

use anyhow::Result;
use paceline_sim::Trace;
use paceline_sim::trace::{Held, Moment};
use plotters::style::RGBColor;

use crate::figure::palette::{colour, ramp};
use crate::figure::stack::Span;

/// A picture shows at most this many changes; of more it shows means.
const MAX_POINTS: u32 = 400;

/// Up to this many jobs get clearly different colours.
const DISTINCT_COLOURS: usize = 6;
/// More jobs share bands with their neighbours.
const MAX_BANDS: usize = 48;

/// The amounts of `bands` bands over a trace. `of` gives the band of what a job holds, and its amount.
pub(super) fn spans(trace: &Trace, bands: usize, of: impl Fn(&Held) -> (usize, f64)) -> Vec<Span> {
    let amounts = |moment: &Moment| {
        let mut amounts = vec![0.0; bands];
        for (band, amount) in moment.jobs.iter().map(&of) {
            if let Some(sum) = amounts.get_mut(band) {
                *sum += amount;
            }
        }
        amounts
    };
    let span =
        |(moment, to): (&Moment, f64)| Span { from: moment.at, to, amounts: amounts(moment) };
    let spans: Vec<Span> = trace.spans().map(span).collect();
    if spans.len() <= usize::try_from(MAX_POINTS).unwrap_or(usize::MAX) {
        return spans;
    }
    means(&spans, bands, trace.until)
}

/// The mean amounts over `MAX_POINTS` stretches of equal length.
fn means(spans: &[Span], bands: usize, until: f64) -> Vec<Span> {
    let edge = |number: u32| until * f64::from(number) / f64::from(MAX_POINTS);
    let mut all = spans.iter().peekable();
    let mut stretches = Vec::new();
    for number in 0..MAX_POINTS {
        let (from, to) = (edge(number), edge(number + 1));
        let mut amounts = vec![0.0; bands];
        while let Some(span) = all.peek() {
            let part = (span.to.min(to) - span.from.max(from)).max(0.0) / (to - from);
            for (sum, amount) in amounts.iter_mut().zip(&span.amounts) {
                *sum += part * amount;
            }
            if span.to > to {
                break;
            }
            all.next();
        }
        stretches.push(Span { from, to, amounts });
    }
    stretches
}

/// The band of the job at `place` of `jobs`, if there are `bands` bands.
pub(super) fn band(place: usize, jobs: usize, bands: usize) -> usize {
    if jobs <= bands { place } else { place * bands / jobs }
}

/// A colour for each band of this many jobs.
pub(super) fn colours(jobs: usize) -> Result<Vec<RGBColor>> {
    if jobs <= DISTINCT_COLOURS {
        return Ok((0..jobs).map(colour).collect());
    }
    let bands = u32::try_from(jobs.min(MAX_BANDS))?;
    Ok((0..bands).map(|place| ramp(place, bands)).collect())
}

/// The largest sum of amounts.
pub(super) fn highest(spans: &[Span]) -> f64 {
    spans.iter().map(|span| span.amounts.iter().sum()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(moments: u32) -> Trace {
        let held = |job, share| Held { job, share, limit: 1.0, class: "-" };
        let moment = |at: u32| {
            let first = if at.is_multiple_of(2) { 0.25 } else { 0.75 };
            Moment { at: f64::from(at), jobs: vec![held(0, first), held(1, 1.0 - first)] }
        };
        Trace { moments: (0..moments).map(moment).collect(), until: f64::from(moments) }
    }

    fn share(held: &Held) -> (usize, f64) {
        (held.job, held.share)
    }

    #[test]
    fn few_changes_are_shown_as_they_are() {
        let spans = spans(&trace(3), 2, share);
        let from: Vec<f64> = spans.iter().map(|span| span.from).collect();
        assert_eq!(from, [0.0, 1.0, 2.0]);
        assert_eq!(spans[1].amounts, [0.75, 0.25]);
        assert!((highest(&spans) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn many_changes_become_means_with_the_same_area() {
        let spans = spans(&trace(10_001), 2, share);
        assert_eq!(u32::try_from(spans.len()), Ok(MAX_POINTS));
        for (band, sum) in [(0, 0.25 * 5001.0 + 0.75 * 5000.0), (1, 0.75 * 5001.0 + 1250.0)] {
            let area = spans.iter().map(|span| (span.to - span.from) * span.amounts[band]);
            assert!((area.sum::<f64>() - sum).abs() < 1e-6, "{band}");
        }
        assert!(spans.iter().all(|span| (span.amounts[0] - 0.5).abs() < 0.02));
    }

    #[test]
    fn too_many_jobs_share_bands_with_their_neighbours() {
        assert_eq!((0..4).map(|job| band(job, 4, 12)).collect::<Vec<_>>(), [0, 1, 2, 3]);
        let bands: Vec<usize> = (0..10).map(|job| band(job, 10, 4)).collect();
        assert_eq!(bands, [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]);
    }
}
