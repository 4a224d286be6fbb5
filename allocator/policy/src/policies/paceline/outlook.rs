//! The forecast for each job: its work left, its end, and its end under equal sharing.
//!
//! The ends are those of a plan in which the job that is served now continues, and the others follow one by
//! one, by density. A job is promised to end no later than under equal sharing. So no end is forecast after
//! that, unless the job is already late.

use super::deadlines::Deadlines;
use super::order::Served;
use super::ranking::Ranking;
use super::row::Row;
use crate::decision::Outlook;
use crate::unit::JobId;

/// The least part of the node that jobs of unknown size leave to the others.
const MIN_CAPACITY: f64 = 0.05;
/// Ends later than this, in seconds, count as unknown.
const MAX_SECONDS: f64 = 1e9;

/// The outlook of a row that is due in `due` seconds under equal sharing, and is planned to end in `ends_in`.
/// `waits_for` is the job that it waits for, if any.
pub(super) fn outlook(
    row: &Row,
    due: f64,
    ends_in: Option<f64>,
    waits_for: Option<JobId>,
) -> Option<Box<Outlook>> {
    if row.left.is_none() && waits_for.is_none() {
        return None;
    }
    let fair = Some(due).filter(|due| row.left.is_some() && *due < MAX_SECONDS);
    Some(Box::new(Outlook { work_left: row.left, ends_in, fair_ends_in: fair, waits_for }))
}

/// Seconds until the end of each row of known size. `capacity` is the work that all rows do in a second, in
/// node-seconds. `by_density` is kept from run to run.
pub(super) fn ends(
    rows: &[Row],
    deadlines: &Deadlines,
    served: &Served,
    capacity: f64,
    by_density: &mut Ranking,
) -> Vec<Option<f64>> {
    let unknown = rows.iter().zip(&served.shares).filter(|(row, _)| row.left.is_none());
    let taken: f64 = unknown.map(|(_, share)| *share).sum();
    let capacity = (capacity - taken).max(MIN_CAPACITY * capacity).max(f64::MIN_POSITIVE);
    // By density, after the job that is served now.
    let sparse = |at: usize| {
        let row = rows.get(at).filter(|row| row.left.is_some())?;
        Some(if served.first == Some(at) { 0.0 } else { 1.0 / row.density })
    };
    let mut ends = vec![None; rows.len()];
    let mut before = 0.0;
    for at in by_density.sort(rows.len(), sparse).iter().map(|rank| rank.place()) {
        let Some((row, end)) = rows.get(at).zip(ends.get_mut(at)) else { continue };
        let Some(left) = row.left else { continue };
        before += left;
        let (alone, due) = (left / row.cap, deadlines.due(at));
        let planned = (before / capacity).max(alone);
        let planned = if due >= alone { planned.min(due) } else { planned };
        *end = Some(planned).filter(|seconds| *seconds < MAX_SECONDS);
    }
    ends
}
