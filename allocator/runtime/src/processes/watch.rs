//! Notices jobs that begin and end.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use paceline_api::labels::ENABLE;
use tokio::time::sleep;

use super::{Processes, Shared};
use crate::ContainerEvent;

/// How often it is checked whether a folder has changed.
const PERIOD: Duration = Duration::from_millis(250);
/// After so many checks the jobs are looked at, as their groups may have ended. Changes of the folders cause no
/// more looks than that.
const CHECKS_PER_LOOK: u32 = 4;

/// When each folder was last changed.
type Changes = Vec<(PathBuf, Option<(i64, i64)>)>;

/// When to look at the jobs. Users decide how much there is to look at, and how often their folders change.
#[derive(Debug, Default)]
struct Pace {
    checks: u32,
    /// The checks during which a change causes no look.
    rest: u32,
    seen: Changes,
}

impl Pace {
    /// Whether to look at the jobs now, after these changes.
    fn is_due(&mut self, changes: Changes) -> bool {
        let is_time = self.checks.is_multiple_of(CHECKS_PER_LOOK);
        let has_changed = !is_time && self.rest == 0 && changes != self.seen;
        self.checks = self.checks.wrapping_add(1);
        self.rest = if has_changed { CHECKS_PER_LOOK - 1 } else { self.rest.saturating_sub(1) };
        if is_time || has_changed {
            self.seen = changes;
        }
        is_time || has_changed
    }
}

impl Shared {
    fn changes(&self) -> Changes {
        let folders = self.folders();
        folders.iter().map(|it| (it.path().to_owned(), it.changed().ok())).collect()
    }
}

impl Processes {
    /// Calls `on_event` for each job that has begun or ended, for as long as it is polled.
    pub(super) async fn watch(&self, mut on_event: impl FnMut(ContainerEvent)) -> Infallible {
        let mut known = BTreeSet::new();
        let mut pace = Pace::default();
        loop {
            if let Ok(changes) = self.aside(Shared::changes).await
                && pace.is_due(changes)
                && let Ok(jobs) = self.described(Vec::new()).await
            {
                let jobs: BTreeSet<String> = jobs.into_iter().map(|job| job.id).collect();
                for id in jobs.symmetric_difference(&known) {
                    let labels = [(ENABLE.to_owned(), "true".to_owned())].into();
                    on_event(ContainerEvent { id: id.clone(), labels });
                }
                known = jobs;
            }
            sleep(PERIOD).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(changes: impl Iterator<Item = i64>) -> Vec<bool> {
        let mut pace = Pace::default();
        changes.map(|at| pace.is_due(vec![(PathBuf::from("/"), Some((at, 0)))])).collect()
    }

    #[test]
    fn folder_that_always_changes_is_looked_at_twice_a_second() {
        let looks = looks(0..400);
        assert_eq!(looks.iter().filter(|look| **look).count(), 200);
        assert!(looks.chunks(4).all(|second| second.iter().filter(|look| **look).count() == 2));
    }

    #[test]
    fn change_after_a_rest_is_looked_at_at_once() {
        let looks = looks([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2].into_iter());
        let at: Vec<usize> = (0..looks.len()).filter(|check| looks[*check]).collect();
        assert_eq!(at, [0, 4, 6, 8, 11]);
    }
}
