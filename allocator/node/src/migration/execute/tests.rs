use std::sync::Mutex;

use paceline_policy::decision::Cause;
use paceline_runtime::HostCpu;

use super::*;
use crate::migration::journal::Folder;
use crate::migration::procedure::Procedure;

pub(in crate::migration) fn plan() -> Move {
    Move {
        job: "vae".to_owned(),
        from: "a".to_owned(),
        to: "b".to_owned(),
        place: "1".to_owned(),
        reason: Cause::Converged,
        source: "source".to_owned(),
        name: "vae".to_owned(),
        limits: HostCpu::default(),
        saved: None,
        procedure: Procedure::default(),
    }
}

/// A backend that fails at one step a number of times, or never finishes it. Records its requests.
#[derive(Default)]
pub(in crate::migration) struct FlakyBackend {
    pub(in crate::migration) fails_at: Option<(Step, u32)>,
    pub(in crate::migration) hangs_at: Option<Step>,
    /// At the step `retire`, reports that the container on the target is gone.
    pub(in crate::migration) refutes: bool,
    pub(in crate::migration) asked: Mutex<Vec<Step>>,
}

impl MigrationBackend for FlakyBackend {
    async fn carry_out(&self, step: Step, _: &Move) -> Result<StepOutcome, StepError> {
        let before = {
            let mut asked = self.asked.lock().unwrap();
            asked.push(step);
            asked.iter().filter(|one| **one == step).count() - 1
        };
        if self.hangs_at == Some(step) {
            std::future::pending::<()>().await;
        }
        if self
            .fails_at
            .is_some_and(|(at, times)| at == step && u32::try_from(before).unwrap() < times)
        {
            return Err(StepError::Refused("no".to_owned()));
        }
        Ok(match step {
            Step::Retire if self.refutes => StepOutcome::Refuted("gone".to_owned()),
            Step::Create => StepOutcome::Made("new".to_owned()),
            Step::Save => StepOutcome::Saved(Some(40)),
            Step::Pause
            | Step::Start
            | Step::Prove
            | Step::Retire
            | Step::Rename
            | Step::Discard
            | Step::Resume => StepOutcome::None,
        })
    }
}

/// Carries out a move; returns its result, its news, and what is left in the journal.
async fn run(
    backend: &FlakyBackend,
    ending: &CancellationToken,
) -> (MigrationResult, Vec<News>, Vec<Move>) {
    let folder = tempfile::tempdir().unwrap();
    let journal = Folder::open(folder.path()).unwrap();
    let (tell, mut received) = mpsc::channel(100);
    let within = Duration::from_mins(1);
    let result = execute(plan(), backend, &journal, (within, ending), &tell).await;
    let mut news = Vec::new();
    while let Ok((job, one)) = received.try_recv() {
        assert_eq!(job, "vae");
        news.extend((!matches!(one, News::Now(_))).then_some(one));
    }
    (result, news, journal.pending().await.plans)
}

#[tokio::test(start_paused = true)]
async fn move_passes_all_steps_and_leaves_no_record() {
    let backend = FlakyBackend::default();
    let (result, news, left) = run(&backend, &CancellationToken::new()).await;
    assert_eq!(result.ended, Ended::Moved);
    assert_eq!((result.plan.saved, result.successor.as_deref()), (Some(40), Some("new")));
    assert!(result.saving.is_some() && result.cost.is_some());
    assert_eq!(news, [News::Made { successor: "new".to_owned() }, News::Frozen]);
    assert_eq!(*backend.asked.lock().unwrap(), Step::ALL[..7]);
    assert_eq!(left, []);
}

#[tokio::test(start_paused = true)]
async fn failure_before_the_proof_is_undone() {
    for at in [Step::Create, Step::Save, Step::Pause, Step::Start, Step::Prove] {
        let backend = FlakyBackend { fails_at: Some((at, 1)), ..FlakyBackend::default() };
        let (result, _, left) = run(&backend, &CancellationToken::new()).await;
        assert_eq!(result.ended, Ended::Stayed("no".to_owned()), "{at:?}");
        let asked = backend.asked.lock().unwrap();
        assert!(asked.ends_with(&[at, Step::Discard, Step::Resume]), "{asked:?}");
        assert_eq!(left, []);
    }
}

#[tokio::test(start_paused = true)]
async fn step_that_cannot_be_undone_is_retried_until_done() {
    let backend = FlakyBackend { fails_at: Some((Step::Retire, 30)), ..FlakyBackend::default() };
    assert_eq!(run(&backend, &CancellationToken::new()).await.0.ended, Ended::Moved);
}

#[tokio::test(start_paused = true)]
async fn failed_rename_does_not_prevent_the_end() {
    let backend = FlakyBackend { fails_at: Some((Step::Rename, 30)), ..FlakyBackend::default() };
    let (result, _, left) = run(&backend, &CancellationToken::new()).await;
    assert_eq!((result.ended, left), (Ended::Moved, Vec::new()));
    let asked = backend.asked.lock().unwrap();
    let tries = asked.iter().filter(|step| **step == Step::Rename).count();
    assert!((2..30).contains(&tries), "{tries}: it is retried, but not endlessly");
}

#[tokio::test(start_paused = true)]
async fn source_resumes_if_the_job_is_not_on_the_target() {
    let backend = FlakyBackend { refutes: true, ..FlakyBackend::default() };
    let (result, _, left) = run(&backend, &CancellationToken::new()).await;
    assert_eq!((result.ended, left), (Ended::Stayed("gone".to_owned()), Vec::new()));
    let asked = backend.asked.lock().unwrap();
    assert!(asked.ends_with(&[Step::Retire, Step::Discard, Step::Resume]), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn job_that_takes_too_long_stays() {
    for (at, words) in [
        (Step::Save, "the job has not saved a checkpoint within 60 s"),
        (Step::Prove, "the job has not reported from the target within 60 s"),
        (Step::Start, "the engine has not answered within 30 s"),
    ] {
        let backend = FlakyBackend { hangs_at: Some(at), ..FlakyBackend::default() };
        let (result, ..) = run(&backend, &CancellationToken::new()).await;
        assert_eq!(result.ended, Ended::Stayed(words.to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn ending_allocator_does_not_wait_and_the_job_stays() {
    let backend = FlakyBackend { hangs_at: Some(Step::Prove), ..FlakyBackend::default() };
    let ending = CancellationToken::new();
    let end = async {
        sleep(Duration::from_secs(5)).await;
        ending.cancel();
    };
    let ((result, _, left), ()) = tokio::join!(run(&backend, &ending), end);
    assert_eq!(result.ended, Ended::Stayed("the allocator is shutting down".to_owned()));
    assert!(result.cost.is_some_and(|cost| (5.0..6.0).contains(&cost)), "{result:?}");
    assert_eq!(left, []);
}

#[tokio::test(start_paused = true)]
async fn move_that_cannot_be_undone_stays_in_the_journal() {
    let backend = FlakyBackend {
        fails_at: Some((Step::Discard, u32::MAX)),
        hangs_at: Some(Step::Save),
        ..FlakyBackend::default()
    };
    let ending = CancellationToken::new();
    ending.cancel();
    let (result, _, left) = run(&backend, &ending).await;
    assert_eq!(result.ended, Ended::Stuck("no".to_owned()));
    assert_eq!(left.first().map(|plan| plan.procedure.step()), Some(Step::Discard));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_begun_without_a_record_in_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Folder::open(folder.path()).unwrap();
    std::fs::remove_dir(folder.path().join("moves")).unwrap();
    std::fs::write(folder.path().join("moves"), "a file in its place").unwrap();
    let backend = FlakyBackend::default();
    let ending = CancellationToken::new();
    let within = Duration::from_mins(1);
    let (tell, _) = mpsc::channel(1);
    let result = execute(plan(), &backend, &journal, (within, &ending), &tell).await;
    assert!(matches!(&result.ended, Ended::Stayed(why) if why.contains("journal")), "{result:?}");
    assert_eq!(*backend.asked.lock().unwrap(), [Step::Discard, Step::Resume]);
}
