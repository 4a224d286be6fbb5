//! Moves that an allocator was killed in the middle of: completed, or undone.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::carry::{Trip, carry};
use super::journal::{Journal, JournalError, Pending};
use super::{Carrier, Move};

/// Of the moves that `of` picks, completes what can no longer be undone, and undoes the rest; what
/// came of each, and why others cannot be read: those are left as they are.
pub async fn recover(
    carrier: &impl Carrier,
    journal: &impl Journal,
    of: impl Fn(&Move) -> bool,
) -> (Vec<Trip>, Vec<JournalError>) {
    // Nothing that is left to do waits for a job, and nobody waits for ever.
    let ending = CancellationToken::new();
    ending.cancel();
    let (nobody, _) = mpsc::channel(1);
    let mut trips = Vec::new();
    let Pending { plans, errors } = journal.pending().await;
    for mut plan in plans.into_iter().filter(of) {
        plan.course = plan.course.abandoned("the allocator was killed in the middle of it");
        trips.push(carry(plan, carrier, journal, (Duration::ZERO, &ending), &nobody).await);
    }
    (trips, errors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrate::carry::Ended;
    use crate::migrate::carry::tests::{Clumsy, plan};
    use crate::migrate::journal::Folder;
    use crate::migrate::procedure::Step;

    #[tokio::test(start_paused = true)]
    async fn a_move_that_was_cut_short_is_undone_or_completed_by_how_far_it_had_come() {
        for (at, step) in Step::ALL[..7].iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            let journal = Folder::open(folder.path()).unwrap();
            let mut plan = plan();
            for _ in 0..at {
                plan.course.came(Ok(()));
            }
            assert_eq!(plan.course.step(), *step);
            journal.write(&plan).await.unwrap();
            let carrier = Clumsy::default();
            let (trips, _) = recover(&carrier, &journal, |_| true).await;
            let asked = carrier.asked.lock().unwrap().clone();
            match step {
                Step::Retire | Step::Rename => {
                    assert_eq!(trips[0].ended, Ended::Moved, "{step:?}");
                    assert_eq!(asked.first(), Some(step), "it is done again");
                }
                Step::Create
                | Step::Save
                | Step::Pause
                | Step::Start
                | Step::Prove
                | Step::Discard
                | Step::Resume => {
                    let why = "the allocator was killed in the middle of it".to_owned();
                    assert_eq!(trips[0].ended, Ended::Stayed(why), "{step:?}");
                    assert_eq!(asked, [Step::Discard, Step::Resume]);
                }
            }
            assert_eq!(journal.pending().await.plans, []);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_record_that_cannot_be_read_keeps_no_other_move_in_its_middle() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Folder::open(folder.path()).unwrap();
        std::fs::write(folder.path().join("moves/a.json"), "no move").unwrap();
        journal.write(&plan()).await.unwrap();
        let (trips, errors) = recover(&Clumsy::default(), &journal, |_| true).await;
        assert_eq!((trips.len(), errors.len()), (1, 1));
        assert!(folder.path().join("moves/a.json").exists(), "it is somebody's all the same");
    }
}
