//! What is expected of each job: the work that it has left, its end, and its end under equal sharing.
//!
//! An end is that of a plan in which the job that is served now goes on, then the others follow by
//! density, one after another. A job is promised to end no later than under equal sharing, so no end is
//! expected after that, unless the job is late already.

use super::deadlines::Deadlines;
use super::order::Served;
use super::rank::Rank;
use super::row::Row;
use crate::decision::Outlook;
use crate::unit::JobId;

/// Jobs of unknown size leave the others this part of the node at the least.
const LEAST_CAPACITY: f64 = 0.05;
/// What is expected later than this, in seconds, is not known.
const LONGEST: f64 = 1e9;

/// The outlook of each row. `capacity` is what all of them do in a second, in node-seconds, and `first`
/// the job that is served first.
pub(super) fn of(
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
        let fair = Some(deadlines.due(at)).filter(|due| row.left.is_some() && *due < LONGEST);
        Some(Box::new(Outlook { work_left: row.left, ends_in, fair_ends_in: fair, waits_for }))
    };
    rows.iter().zip(&served.shares).zip(ends).enumerate().map(outlook).collect()
}

/// Seconds until the end of each row of known size.
fn ends(rows: &[Row], deadlines: &Deadlines, served: &Served, capacity: f64) -> Vec<Option<f64>> {
    let unknown = rows.iter().zip(&served.shares).filter(|(row, _)| row.left.is_none());
    let taken: f64 = unknown.map(|(_, share)| *share).sum();
    let capacity = (capacity - taken).max(LEAST_CAPACITY * capacity).max(f64::MIN_POSITIVE);
    // The densest first, after the one that is served.
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
        *end = Some(planned).filter(|seconds| *seconds < LONGEST);
    }
    ends
}
