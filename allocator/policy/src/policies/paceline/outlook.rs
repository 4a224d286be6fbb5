//! The forecast for each job: its work left, its end, and its end under equal sharing.
//!
//! The ends are those of a plan in which the job that is served now continues, and the others follow one by
//! one, by density. A job is promised to end no later than under equal sharing. So no end is forecast after
//! that, unless the job is already late.

use super::deadlines::Deadlines;
use super::order::Served;
use super::rank::Rank;
use super::row::Row;
use crate::decision::Outlook;
use crate::unit::JobId;

/// The least part of the node that jobs of unknown size leave to the others.
const MIN_CAPACITY: f64 = 0.05;
/// Ends later than this, in seconds, count as unknown.
const MAX_SECONDS: f64 = 1e9;

/// The outlook of each row. `capacity` is the work that all of them do in a second, in node-seconds. `first`
/// is the job that is served first.
pub(super) fn outlooks(
    rows: &[Row],
    deadlines: &Deadlines,
    served: &Served,
    capacity: f64,
    first: Option<&JobId>,
) -> Vec<Option<Box<Outlook>>> {
    let ends = ends(rows, deadlines, served, capacity);
    let outlook = |(at, ((row, share), ends_in)): (usize, ((&Row, &f64), Option<f64>))| {
        let waits_for = first.filter(|_| *share <= 0.0).cloned();
        if row.left.is_none() && waits_for.is_none() {
            return None;
        }
        let fair = Some(deadlines.due(at)).filter(|due| row.left.is_some() && *due < MAX_SECONDS);
        Some(Box::new(Outlook { work_left: row.left, ends_in, fair_ends_in: fair, waits_for }))
    };
    rows.iter().zip(&served.shares).zip(ends).enumerate().map(outlook).collect()
}

/// Seconds until the end of each row of known size.
fn ends(rows: &[Row], deadlines: &Deadlines, served: &Served, capacity: f64) -> Vec<Option<f64>> {
    let unknown = rows.iter().zip(&served.shares).filter(|(row, _)| row.left.is_none());
    let taken: f64 = unknown.map(|(_, share)| *share).sum();
    let capacity = (capacity - taken).max(MIN_CAPACITY * capacity).max(f64::MIN_POSITIVE);
    // By density, after the job that is served now.
    let rank = |(at, row): (usize, &Row)| {
        let sparse = if served.first == Some(at) { 0.0 } else { 1.0 / row.density };
        Rank::new(sparse, at)
    };
    let mut order: Vec<Rank> = rows.iter().enumerate().map(rank).collect();
    order.sort_unstable();
    let mut ends = vec![None; rows.len()];
    let mut before = 0.0;
    for at in order.into_iter().map(Rank::place) {
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
