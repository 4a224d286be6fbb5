//! When the policy runs again, if nothing happens before.

use super::deadlines::Deadlines;
use super::order::Served;
use super::row::{FREE_CAP, Row};
use super::settings::Settings;

/// The policy runs again once a job of unknown size has used this part more.
const NEWS: f64 = 0.1;
/// The share above which a job can show how much it can use.
const ROOM: f64 = 0.3;

/// Seconds until the next run. `learns` means that the first job has too few losses for a forecast that the
/// order needs. `waits_for_a_loss` means that the next loss of some job decides about its end.
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
    // A job with enough room whose cap is not measured yet will show it soon.
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
