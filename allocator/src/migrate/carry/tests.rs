use std::sync::Mutex;

use paceline_policy::decision::Cause;

use super::*;
use crate::migrate::journal::Folder;
use crate::migrate::procedure::Procedure;
use crate::observe::container::HostCpu;

pub(in crate::migrate) fn plan() -> Move {
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
        course: Procedure::default(),
    }
}

/// Fails at one step for so many times, or never comes to an end there; notes what it is asked for.
#[derive(Default)]
pub(in crate::migrate) struct Clumsy {
    pub(in crate::migrate) fails_at: Option<(Step, u32)>,
    pub(in crate::migrate) hangs_at: Option<Step>,
    /// Finds nothing on the target when the source is to be given up.
    pub(in crate::migrate) refutes: bool,
    pub(in crate::migrate) asked: Mutex<Vec<Step>>,
}

impl Carrier for Clumsy {
    async fn carry_out(&self, step: Step, _: &Move) -> Result<Fact, CarryError> {
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
            return Err(CarryError::Refused("no".to_owned()));
        }
        Ok(match step {
            Step::Retire if self.refutes => Fact::Refuted("gone".to_owned()),
            Step::Create => Fact::Made("new".to_owned()),
            Step::Save => Fact::Saved(Some(40)),
            Step::Pause
            | Step::Start
            | Step::Prove
            | Step::Retire
            | Step::Rename
            | Step::Discard
            | Step::Resume => Fact::None,
        })
    }
}

/// Carries a move out; what came of it, what was told, and what is left in the journal.
async fn trip(carrier: &Clumsy, ending: &CancellationToken) -> (Trip, Vec<News>, Vec<Move>) {
    let folder = tempfile::tempdir().unwrap();
    let journal = Folder::open(folder.path()).unwrap();
    let (tell, mut told) = mpsc::channel(100);
    let within = Duration::from_mins(1);
    let trip = carry(plan(), carrier, &journal, (within, ending), &tell).await;
    let mut news = Vec::new();
    while let Ok((job, one)) = told.try_recv() {
        assert_eq!(job, "vae");
        news.extend((!matches!(one, News::Now(_))).then_some(one));
    }
    (trip, news, journal.pending().await.plans)
}

#[tokio::test(start_paused = true)]
async fn a_move_goes_through_all_steps_and_leaves_no_record() {
    let carrier = Clumsy::default();
    let (trip, told, left) = trip(&carrier, &CancellationToken::new()).await;
    assert_eq!(trip.ended, Ended::Moved);
    assert_eq!((trip.plan.saved, trip.successor.as_deref()), (Some(40), Some("new")));
    assert!(trip.saving.is_some() && trip.cost.is_some());
    assert_eq!(told, [News::Made { successor: "new".to_owned() }, News::Frozen]);
    assert_eq!(*carrier.asked.lock().unwrap(), Step::ALL[..7]);
    assert_eq!(left, []);
}

#[tokio::test(start_paused = true)]
async fn whatever_fails_before_the_proof_is_undone() {
    for at in [Step::Create, Step::Save, Step::Pause, Step::Start, Step::Prove] {
        let carrier = Clumsy { fails_at: Some((at, 1)), ..Clumsy::default() };
        let (trip, _, left) = trip(&carrier, &CancellationToken::new()).await;
        assert_eq!(trip.ended, Ended::Stayed("no".to_owned()), "{at:?}");
        let asked = carrier.asked.lock().unwrap();
        assert!(asked.ends_with(&[at, Step::Discard, Step::Resume]), "{asked:?}");
        assert_eq!(left, []);
    }
}

#[tokio::test(start_paused = true)]
async fn what_must_be_done_is_tried_until_it_is() {
    let carrier = Clumsy { fails_at: Some((Step::Retire, 30)), ..Clumsy::default() };
    assert_eq!(trip(&carrier, &CancellationToken::new()).await.0.ended, Ended::Moved);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_keeps_no_move_from_its_end() {
    let carrier = Clumsy { fails_at: Some((Step::Rename, 30)), ..Clumsy::default() };
    let (trip, _, left) = trip(&carrier, &CancellationToken::new()).await;
    assert_eq!((trip.ended, left), (Ended::Moved, Vec::new()));
    let asked = carrier.asked.lock().unwrap();
    let tries = asked.iter().filter(|step| **step == Step::Rename).count();
    assert!((2..30).contains(&tries), "{tries}: it is tried again, and not for ever");
}

#[tokio::test(start_paused = true)]
async fn the_source_goes_on_where_it_turns_out_that_the_job_is_not_on_the_target() {
    let carrier = Clumsy { refutes: true, ..Clumsy::default() };
    let (trip, _, left) = trip(&carrier, &CancellationToken::new()).await;
    assert_eq!((trip.ended, left), (Ended::Stayed("gone".to_owned()), Vec::new()));
    let asked = carrier.asked.lock().unwrap();
    assert!(asked.ends_with(&[Step::Retire, Step::Discard, Step::Resume]), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_takes_too_long_stays() {
    for (at, words) in [
        (Step::Save, "the job has not saved a checkpoint within 60 s"),
        (Step::Prove, "the job has not reported from there within 60 s"),
        (Step::Start, "the engine has not answered within 30 s"),
    ] {
        let carrier = Clumsy { hangs_at: Some(at), ..Clumsy::default() };
        let (trip, ..) = trip(&carrier, &CancellationToken::new()).await;
        assert_eq!(trip.ended, Ended::Stayed(words.to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn an_allocator_that_ends_waits_for_no_job_and_leaves_it_where_it_is() {
    let carrier = Clumsy { hangs_at: Some(Step::Prove), ..Clumsy::default() };
    let ending = CancellationToken::new();
    let end = async {
        sleep(Duration::from_secs(5)).await;
        ending.cancel();
    };
    let ((trip, _, left), ()) = tokio::join!(trip(&carrier, &ending), end);
    assert_eq!(trip.ended, Ended::Stayed("the allocator ends".to_owned()));
    assert!(trip.cost.is_some_and(|cost| (5.0..6.0).contains(&cost)), "{trip:?}");
    assert_eq!(left, []);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_undone_before_the_end_stays_in_the_journal() {
    let carrier = Clumsy {
        fails_at: Some((Step::Discard, u32::MAX)),
        hangs_at: Some(Step::Save),
        ..Clumsy::default()
    };
    let ending = CancellationToken::new();
    ending.cancel();
    let (trip, _, left) = trip(&carrier, &ending).await;
    assert_eq!(trip.ended, Ended::Stuck("no".to_owned()));
    assert_eq!(left.first().map(|plan| plan.course.step()), Some(Step::Discard));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_begun_that_the_journal_cannot_keep() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Folder::open(folder.path()).unwrap();
    std::fs::remove_dir(folder.path().join("moves")).unwrap();
    let carrier = Clumsy::default();
    let ending = CancellationToken::new();
    let within = Duration::from_mins(1);
    let (nobody, _) = mpsc::channel(1);
    let trip = carry(plan(), &carrier, &journal, (within, &ending), &nobody).await;
    assert!(matches!(&trip.ended, Ended::Stayed(why) if why.contains("journal")), "{trip:?}");
    assert_eq!(*carrier.asked.lock().unwrap(), [Step::Discard, Step::Resume]);
}
