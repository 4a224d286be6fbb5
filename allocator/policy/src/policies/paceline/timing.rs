//! When the policy is to run again, if nothing happens before.

use super::deadlines::Deadlines;
use super::order::Served;
use super::row::{FREE_CAP, Row};
use super::settings::Settings;

/// A job whose size is unknown is looked at again once it has used so much more.
const NEWS: f64 = 0.1;
/// A share by which a job can show how much it can use.
const ROOM: f64 = 0.3;

/// Seconds until then. `learns` says that the first has reported too few losses for a forecast that the
/// order needs, `waits_for_a_loss` that some job's end hangs on its next loss.
pub(super) fn next(
    rows: &[Row],
    deadlines: &Deadlines,
    served: &Served,
    settings: &Settings,
    (learns, waits_for_a_loss): (bool, bool),
) -> f64 {
    let mut next = settings.interval;
    if waits_for_a_loss || served.measures || rows.iter().any(|row| row.is_new) {
        return settings.least.min(next);
    }
    if let Some((at, first)) = served.first.and_then(|at| Some((at, rows.get(at)?))) {
        next = next.min(deadlines.leaves(at));
        if first.left.is_none() || learns {
            next = next.min(NEWS * first.used);
        }
    }
    // Who has room and has not shown yet how much of it it can use does so soon.
    let shows =
        |(row, share): (&Row, &f64)| *share > ROOM && !row.cap_is_known && row.left.is_some();
    if rows.iter().zip(&served.shares).any(shows) {
        next = settings.least;
    }
    let weights: f64 = rows.iter().map(|row| row.weight).sum();
    for (at, (row, share)) in rows.iter().zip(&served.shares).enumerate() {
        if row.left.is_none() && *share <= 0.0 {
            // Until it has fallen behind equal sharing.
            let ahead = row.used / (1.0 - row.theta).max(0.01) - row.fair;
            next = next.min(ahead * weights / row.weight);
        }
        if let Some(left) = row.left.filter(|_| row.cap < FREE_CAP && *share < row.cap) {
            next = next.min(deadlines.due(at) - left / row.cap - settings.least);
        }
    }
    next.max(settings.least).min(settings.interval.max(settings.least))
}
