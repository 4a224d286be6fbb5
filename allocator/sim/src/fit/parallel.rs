//! The most that a job can use: what it used while nothing kept it from using more. That is so while
//! there is room on the node, and on a full one while a neighbour gets more than the job: the kernel
//! shares alike among those that want more.

use std::collections::BTreeMap;

use paceline_policy::JobId;

use super::model::{Fitted, Measured, Why};
use super::window::{LEAST_SECONDS, Window};

/// What is left of the node on average while its jobs always have room for more. Several that
/// compete for it are in each other's way before it is full on average …
const ROOM: f64 = 0.05;
/// … and one alone is not, if others use less than this.
const ROOM_ALONE: f64 = 0.03;
/// A job that gets this much of a full node can use all of it.
const WHOLE: f64 = 0.9;

/// On a full node, a job that gets a smaller part than this of what its neighbour gets wants no more.
const CONTENT: f64 = 0.9;

/// Alone for so many seconds, a job has shown what it can use. Beside others it may leave room and
/// want more all the same: jobs that compete are in each other's way.
const LEAST_ALONE: f64 = 3.0;

/// What was seen of one job without a limit.
#[derive(Debug, Default)]
struct Seen {
    alone: Uses,
    beside: Uses,
    most: f64,
}

/// What a job used while nothing kept it from using more.
#[derive(Debug, Default)]
struct Uses {
    /// Its shares while it could have had more, and for how long.
    roomy: Vec<(f64, f64)>,
    /// For how long it filled the node.
    whole: f64,
}

/// The largest share of each job on a node that has `room` for jobs.
///
/// The mean use while it was alone counts, or if it hardly was, while there was room; with whatever
/// the job spent waiting, so that alone it takes as long as it did.
pub(super) fn parallel(windows: &[Window<'_>], room: f64) -> BTreeMap<JobId, Fitted<Measured>> {
    let mut seen: BTreeMap<&JobId, Seen> = BTreeMap::new();
    for window in windows {
        // Without a word on the node, its usual use by others is all there is to go by.
        let used = window.used();
        let node = window.node.unwrap_or(used + 1.0 - room);
        let alone = window.jobs.len() == 1 && node - used < ROOM_ALONE;
        let roomy = node < 1.0 - if alone { ROOM_ALONE } else { ROOM };
        let most = window.jobs.values().filter(|part| !part.guessed).map(|part| part.share);
        let content = CONTENT * most.fold(0.0, f64::max);
        for (id, part) in &window.jobs {
            let own = seen.entry(id).or_default();
            own.most = own.most.max(part.share);
            let tells = !part.guessed && part.trains && window.seconds >= LEAST_SECONDS;
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

impl Seen {
    fn largest(&self) -> Fitted<Measured> {
        let alone = self.alone.seconds() + self.alone.whole;
        let uses = if alone >= LEAST_ALONE { &self.alone } else { &self.beside };
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
