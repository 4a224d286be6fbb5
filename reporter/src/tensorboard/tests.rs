use std::fs;

use paceline_wire::Validation;

use super::*;
use crate::bell::Bell;
use crate::job::Job;
use crate::settings::Settings;

fn start() -> Progress {
    let (mut progress, _) =
        Job::new(Settings::new("vae".to_owned()), Bell::new().unwrap().0).read();
    (progress.started_at, progress.now) = (1_700_000_000.0, 1_700_000_000.0);
    progress
}

/// The progress after so many seconds and reports, whose losses sum up to this.
fn later(seconds: f64, count: u64, sum: f64) -> Progress {
    let mut progress = start();
    progress.now += seconds;
    progress.step = Some(count);
    (progress.eval.count, progress.eval.sum) = (count, sum);
    (progress.batch_latency.count, progress.batch_latency.sum) = (count, seconds / 2.0);
    progress
}

fn values(before: &Progress, progress: &Progress) -> Vec<(&'static str, f64)> {
    let (before, now) = (Before::new(before), Before::new(progress));
    let scalars = before.scalars(&now, progress, || Some(0.75));
    scalars.into_iter().map(|scalar| (scalar.tag, scalar.value)).collect()
}

#[test]
fn point_has_the_means_since_the_point_before() {
    let mut progress = later(8.0, 16, 40.0);
    progress.epoch = Some(2);
    progress.validation = Some(Validation { value: 3.0, best: 2.5, count: 1, updated_at: 0.0 });
    let expected = [
        ("loss/train", 2.5),
        ("loss/smoothed", 0.75),
        ("loss/validation", 3.0),
        ("time/batch_seconds", 0.25),
        ("time/steps_per_second", 2.0),
        ("progress/epoch", 2.0),
    ];
    assert_eq!(values(&later(4.0, 8, 20.0), &progress), expected);
}

#[test]
fn loss_after_a_huge_one_is_the_recent_one() {
    let mut progress = later(8.0, 16, 1e20);
    progress.eval.value = Some(0.5);
    assert_eq!(values(&later(4.0, 8, 1e20), &progress)[0], ("loss/train", 0.5));
}

#[test]
fn unknown_value_is_left_out() {
    let mut progress = later(4.0, 0, 0.0);
    (progress.batch_latency.count, progress.batch_latency.sum) = (2, 1.0);
    assert_eq!(values(&start(), &progress), [("time/batch_seconds", 0.5)]);
}

#[test]
fn points_of_a_long_run_are_further_apart() {
    let folder = tempfile::tempdir().unwrap();
    let mut board = Board::new(folder.path(), None, &start());
    let mut written = Vec::new();
    for hour in [0_u32, 1, 10, 1_000] {
        let before = board.describe().sent;
        for second in 0..100_u32 {
            let at = f64::from(hour) * 3_600.0 + f64::from(second) + 0.5;
            board.add(&later(at, u64::from(hour * 100 + second + 1), 1.0), false, || None);
        }
        written.push(board.describe().sent - before);
    }
    assert_eq!(written, [100, 50, 10, 10]);
}

#[test]
fn nothing_new_gives_no_point_and_the_end_gives_one_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut board = Board::new(folder.path(), None, &start());
    for seconds in 0..10 {
        board.add(&later(f64::from(seconds), 0, 0.0), false, || None);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "no report, so no file");
    board.add(&later(7_200.0, 1, 1.0), false, || None);
    board.add(&later(7_200.1, 2, 1.0), false, || None);
    assert_eq!(board.describe().sent, 1);
    let mut ended = later(7_200.2, 3, 1.0);
    ended.state = State::Finished;
    board.add(&ended, false, || None);
    assert_eq!(board.describe().sent, 2);
    board.add(&later(7_200.3, 4, 1.0), true, || None);
    assert_eq!(board.describe().sent, 3);
}

#[test]
fn further_rank_has_a_folder_below() {
    let folder = tempfile::tempdir().unwrap();
    for global in [0, 3] {
        let rank = Some(Rank { global, local: None, world: None });
        Board::new(folder.path(), rank, &start()).add(&later(1.0, 1, 1.0), true, || None);
    }
    let names = |path: &Path| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names(folder.path()).any(|name| name == "rank_3"));
    assert_eq!(names(folder.path()).count(), 2);
    assert_eq!(names(&folder.path().join("rank_3")).count(), 1);
}

#[test]
fn folder_that_cannot_be_made_costs_no_point_once_it_can() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    fs::write(&run, "in the way").unwrap();
    let mut board = Board::new(&run, None, &start());
    board.add(&later(1.0, 1, 1.0), false, || None);
    assert!(board.describe().error.is_some());
    fs::remove_file(&run).unwrap();
    board.add(&later(2.0, 1, 1.0), false, || None);
    let described = board.describe();
    assert_eq!((described.sent, described.failed, described.error), (1, 1, None));
    assert_eq!(described.name, run.display().to_string());
}
