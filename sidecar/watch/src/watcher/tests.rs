use std::os::unix::net::UnixListener;
use std::path::Path;

use paceline_reporter::Reporter;
use paceline_wire::State;

use super::*;

fn job(name: &str, folder: &Path) -> Reporter {
    let socket = format!("unix:{}", folder.join(format!("{name}.sock")).display());
    let reporter = Reporter::builder(name).listen(&socket).hide_address().start().unwrap();
    reporter.record(Some(0.5), None);
    reporter
}

/// Waits until the jobs are as wanted.
async fn until(board: &Board, is: impl Fn(&Jobs) -> bool) {
    board.subscribe().wait_for(|()| board.read(|jobs| is(jobs))).await.unwrap();
}

fn has(jobs: &Jobs, name: &str, state: State, standing: Standing) -> bool {
    jobs.iter().any(|job| {
        job.progress.job == name && job.progress.state == state && job.standing == standing
    })
}

#[tokio::test]
async fn all_jobs_of_a_folder_are_found_beside_strangers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let _jobs = [job("vae", path), job("mnist", path)];
    // One that never answers, and one whose process has ended.
    let _silent = UnixListener::bind(path.join("silent.sock")).unwrap();
    drop(UnixListener::bind(path.join("dead.sock")).unwrap());
    let (board, failures) = once(&Search::of_folder(path)).await;
    let mut names: Vec<_> =
        board.read(|jobs| jobs.iter().map(|job| job.progress.job.clone()).collect());
    names.sort_unstable();
    assert_eq!(names, ["mnist", "vae"]);
    let kinds: Vec<_> =
        failures.values().map(|failure| matches!(failure, Failure::Silent)).collect();
    assert_eq!(kinds, [false, true], "{failures:?}");
}

#[tokio::test]
async fn job_is_followed_to_its_end_and_the_next_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let board = Arc::new(Board::new());
    let search = Search::of_folder(folder.path());
    let watching = Box::pin(run(&search, &board, Rest::Never));
    let story = async {
        until(&board, |jobs| jobs.turns > 0 && jobs.iter().count() == 0).await;
        let first = job("vae", folder.path());
        until(&board, |jobs| has(jobs, "vae", State::Running, Standing::Answers)).await;
        until(&board, |jobs| jobs.iter().all(|job| !job.past.points.is_empty())).await;
        first.finish();
        drop(first);
        // Its last event says that it has finished.
        until(&board, |jobs| has(jobs, "vae", State::Finished, Standing::Gone)).await;
        let _second = job("vae", folder.path());
        until(&board, |jobs| has(jobs, "vae", State::Running, Standing::Answers)).await;
        assert_eq!(board.read(|jobs| jobs.iter().count()), 2);
    };
    tokio::select! {
        () = watching => unreachable!("it never returns"),
        () = story => {}
    }
}
