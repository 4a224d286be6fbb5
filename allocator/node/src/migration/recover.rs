//! Recovers moves that were interrupted because the allocator was killed: completes or undoes them.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::execute::{MigrationResult, execute};
use super::journal::{Journal, JournalError, Pending};
use super::{MigrationBackend, Move};

/// Recovers the moves that `of` selects. Those that cannot be undone any more are completed, the
/// others are undone. Returns the results, and the errors of records that cannot be read and stay.
pub async fn recover(
    backend: &impl MigrationBackend,
    journal: &impl Journal,
    of: impl Fn(&Move) -> bool,
) -> (Vec<MigrationResult>, Vec<JournalError>) {
    // None of the remaining steps waits for a job, and no step is retried endlessly.
    let ending = CancellationToken::new();
    ending.cancel();
    let (tell, _) = mpsc::channel(1);
    let mut results = Vec::new();
    let Pending { plans, errors } = journal.pending().await;
    for mut plan in plans.into_iter().filter(of) {
        plan.procedure = plan.procedure.abandoned("the allocator was killed during the move");
        results.push(execute(plan, backend, journal, (Duration::ZERO, &ending), &tell).await);
    }
    (results, errors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migration::execute::Ended;
    use crate::migration::execute::tests::{FlakyBackend, plan};
    use crate::migration::journal::Folder;
    use crate::migration::procedure::Step;

    #[tokio::test(start_paused = true)]
    async fn interrupted_move_is_undone_or_completed_by_its_step() {
        for (at, step) in Step::ALL[..7].iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            let journal = Folder::open(folder.path()).unwrap();
            let mut plan = plan();
            for _ in 0..at {
                plan.procedure.finished(Ok(()));
            }
            assert_eq!(plan.procedure.step(), *step);
            journal.write(&plan).await.unwrap();
            let backend = FlakyBackend::default();
            let (results, _) = recover(&backend, &journal, |_| true).await;
            let asked = backend.asked.lock().unwrap().clone();
            match step {
                Step::Retire | Step::Rename => {
                    assert_eq!(results[0].ended, Ended::Moved, "{step:?}");
                    assert_eq!(asked.first(), Some(step), "it is done again");
                }
                Step::Create
                | Step::Save
                | Step::Pause
                | Step::Start
                | Step::Prove
                | Step::Discard
                | Step::Resume => {
                    let why = "the allocator was killed during the move".to_owned();
                    assert_eq!(results[0].ended, Ended::Stayed(why), "{step:?}");
                    assert_eq!(asked, [Step::Discard, Step::Resume]);
                }
            }
            assert_eq!(journal.pending().await.plans, []);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn unreadable_record_does_not_block_other_moves() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Folder::open(folder.path()).unwrap();
        std::fs::write(folder.path().join("moves/a.json"), "no move").unwrap();
        journal.write(&plan()).await.unwrap();
        let (results, errors) = recover(&FlakyBackend::default(), &journal, |_| true).await;
        assert_eq!((results.len(), errors.len()), (1, 1));
        assert!(folder.path().join("moves/a.json").exists(), "an unknown file is not removed");
    }
}
