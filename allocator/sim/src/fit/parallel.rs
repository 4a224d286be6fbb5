//! The most that a job can use: its use while nothing kept it from using more. That is so while
//! there is room on the node. On a full node it is so while a neighbour gets more than the job,
//! since the kernel gives equal shares to those that want more.

use std::collections::BTreeMap;

use paceline_policy::JobId;

use super::model::{Fitted, Measured, Why};
use super::window::{MIN_SECONDS, Window};

/// The part of the node that is idle, on average, while its jobs have room for more. Several jobs
/// that compete for a node get in each other's way before it is full on average …
const ROOM: f64 = 0.05;
/// … and a single job does not, if others use less than this.
const ROOM_ALONE: f64 = 0.03;
/// A job that gets this much of a full node can use all of it.
const WHOLE: f64 = 0.9;

/// On a full node, a job that gets a smaller part of its neighbour's share than this wants no more.
const SATURATED: f64 = 0.9;

/// After so many seconds alone, a job has shown what it can use. Beside others it may leave room
/// and still want more, since competing jobs get in each other's way.
const MIN_ALONE_SECONDS: f64 = 3.0;

/// The use of one job without a limit.
#[derive(Debug, Default)]
struct ObservedUse {
    alone: Uses,
    beside: Uses,
    most: f64,
}

/// The use of a job while nothing kept it from using more.
#[derive(Debug, Default)]
struct Uses {
    /// Seconds and shares while it could have had more.
    roomy: Vec<(f64, f64)>,
    /// For how long it filled the node.
    whole: f64,
}

/// The largest share of each job on a node that has `room` for jobs.
///
/// The mean use while it was alone counts; if it hardly was, the mean use while there was room.
/// Waiting is included, so that the job takes as long alone as it did.
pub(super) fn parallel(windows: &[Window<'_>], room: f64) -> BTreeMap<JobId, Fitted<Measured>> {
    let mut seen: BTreeMap<&JobId, ObservedUse> = BTreeMap::new();
    for window in windows {
        // If the use of the node is unknown, the usual use by others is assumed.
        let used = window.used();
        let node = window.node.unwrap_or(used + 1.0 - room);
        let alone = window.jobs.len() == 1 && node - used < ROOM_ALONE;
        let roomy = node < 1.0 - if alone { ROOM_ALONE } else { ROOM };
        let most = window.jobs.values().filter(|part| !part.estimated).map(|part| part.share);
        let content = SATURATED * most.fold(0.0, f64::max);
        for (id, part) in &window.jobs {
            let own = seen.entry(id).or_default();
            own.most = own.most.max(part.share);
            let tells = !part.estimated && part.trains && window.seconds >= MIN_SECONDS;
            if !tells || !part.cap.is_all() || part.share <= 0.0 {
                continue;
            }
            let uses = if alone { &mut own.alone } else { &mut own.beside };
            if roomy || part.share < content {
                uses.roomy.push((window.seconds, part.share));
            } else if part.share >= WHOLE {
                uses.whole += window.seconds;
            }
        }
    }
    seen.into_iter().map(|(id, seen)| (id.clone(), seen.largest())).collect()
}

impl ObservedUse {
    fn largest(&self) -> Fitted<Measured> {
        let alone = self.alone.seconds() + self.alone.whole;
        let uses = if alone >= MIN_ALONE_SECONDS { &self.alone } else { &self.beside };
        uses.largest().ok_or(Why::NoRoom { most: self.most })
    }
}

impl Uses {
    /// For how long it could have had more.
    fn seconds(&self) -> f64 {
        self.roomy.iter().map(|(seconds, _)| seconds).sum()
    }

    fn largest(&self) -> Option<Measured> {
        let seconds = self.seconds();
        if self.whole > 0.0 && self.whole >= seconds {
            return Some(Measured { mean: 1.0, deviation: 0.0 });
        }
        if seconds <= 0.0 {
            return None;
        }
        let mean = self.roomy.iter().map(|(s, share)| s * share).sum::<f64>() / seconds;
        let square = |(seconds, share): &(f64, f64)| seconds * (share - mean).powi(2);
        let deviation = (self.roomy.iter().map(square).sum::<f64>() / seconds).sqrt();
        Some(Measured { mean: mean.min(1.0), deviation })
    }
}
