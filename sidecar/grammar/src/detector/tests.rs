use paceline_lines::observation::Phase;
use paceline_lines::terminal::End::{Flush, Newline};

use super::score::ratio;
use super::*;

fn read(detector: &mut Detector, line: &str) -> Option<Observation> {
    detector.read(line, Newline).cloned()
}

fn values(detector: &mut Detector, line: &str) -> Vec<f64> {
    read(detector, line)
        .map_or_else(Vec::new, |found| found.losses.iter().map(|loss| loss.value).collect())
}

#[test]
fn confidence_is_the_share_of_what_was_read() {
    let mut detector = Detector::default();
    assert_eq!((detector.matched(), detector.counts()), (None, Counts::default()));
    for step in 0..30 {
        let line = format!("Train Epoch: 1 [{step}/60 ({step}%)]\tLoss: 0.5");
        assert!(read(&mut detector, &line).is_some());
        assert!(read(&mut detector, "loading 5 files").is_none());
    }
    for _ in 0..6 {
        assert!(read(&mut detector, "loss: 0.5").is_some());
        assert!(read(&mut detector, "the loss of 5 files is sad").is_none());
    }
    let expected = Match { name: "pytorch mnist", confidence: 30.0 / 42.0 };
    assert_eq!(detector.matched(), Some(expected));
    assert_eq!(detector.counts(), Counts { lines: 72, losses: 36, unread: 6 });
}

#[test]
fn shares_of_large_counts_are_right() {
    for (part, all, share) in [(1, 4, 0.25), (0, 9, 0.0), (1 << 61, 1 << 63, 0.25), (7, 7, 1.0)] {
        assert!((ratio(part, all) - share).abs() < 1e-9, "{part}/{all}");
    }
    assert!((ratio(u64::MAX, u64::MAX) - 1.0).abs() < 1e-9);
}

#[test]
fn program_of_another_process_is_recognised() {
    let mut detector = Detector::default();
    assert!(read(&mut detector, "rank 0: creating the model").is_none());
    assert_eq!(values(&mut detector, "[rank 7] step: 1 | loss: 0.5"), [0.5]);
    assert_eq!(detector.matched(), Some(Match { name: "key value", confidence: 1.0 }));
}

#[test]
fn mixed_lines_of_two_programs_are_read() {
    let mut detector = Detector::default();
    for step in 0..40 {
        let mnist = format!("Train Epoch: 1 [{step}/60 ({step}%)]\tLoss: 0.5");
        let json = format!("{{\"step\": {step}, \"loss\": 0.25}}");
        assert_eq!(values(&mut detector, &mnist), [0.5]);
        assert_eq!(values(&mut detector, &json), [0.25]);
    }
    assert_eq!(detector.matched().map(|found| found.confidence), Some(0.5));
}

#[test]
fn particular_grammars_are_tried_before_the_general_one() {
    let mut detector = Detector::default();
    for _ in 0..100 {
        assert!(read(&mut detector, "loss: 0.5").is_some());
    }
    let line = "Test: [  1/196]\tTime  5.2 ( 5.2)\tLoss 6.7 (6.8)";
    assert_eq!(values(&mut detector, line), [6.8]);
}

#[test]
fn patterns_are_tried_first_with_and_without_the_prefix() {
    let patterns = ["^obj (?P<loss>.*)", "^W .* (?P<val_loss>.*)", "Loss: (?P<test_loss>.*)"];
    let mut detector = Detector::new(Patterns::new(patterns).unwrap());
    let found = read(&mut detector, "[rank3]: obj 0.5").unwrap();
    assert_eq!((found.rank, found.losses.len()), (Some(3), 1));
    assert_eq!(values(&mut detector, "W x 0.75"), [0.75]);
    let found = read(&mut detector, "Train Epoch: 1 [0/60 (0%)]\tLoss: 0.5").unwrap();
    assert_eq!((found.losses[0].phase, found.step), (Phase::Test, None));
    assert_eq!(detector.matched(), Some(Match { name: "pattern", confidence: 1.0 }));
}

#[test]
fn incomplete_line_is_not_read() {
    let mut detector = Detector::default();
    assert_eq!(detector.read("loss: 0.5", Flush), None);
    assert_eq!(detector.read("Train Epoch: 1 [0/60 (0%)]\tLoss: 0.5", Flush), None);
    assert_eq!(detector.counts(), Counts::default());
}

#[test]
fn heading_gives_the_epoch_to_lines_without_one() {
    let mut detector = Detector::default();
    assert!(read(&mut detector, "Epoch 3/10").is_none());
    let found = read(&mut detector, "batch 5 loss: 0.5").unwrap();
    assert_eq!((found.epoch, found.total_epochs), (Some(3.0), Some(10)));
    let found = read(&mut detector, "step 5 loss: 0.5").unwrap();
    assert_eq!((found.epoch, found.total_epochs, found.step_in_epoch), (Some(3.0), None, false));
}

#[test]
fn totals_are_read_until_the_first_loss() {
    let mut detector = Detector::default();
    let found = read(&mut detector, "Namespace(batch_size=64, epochs=14)").unwrap();
    assert_eq!((found.total_epochs, found.losses.len()), (Some(14), 0));
    let found = read(&mut detector, "  Total optimization steps = 1,200").unwrap();
    assert_eq!((found.total_steps, found.step), (Some(1200), None));
    assert_eq!(detector.counts(), Counts { lines: 2, losses: 0, unread: 0 });
    assert!(read(&mut detector, "loss: 0.5").is_some());
    assert!(read(&mut detector, "epochs: 3").is_none());
}

#[test]
fn bar_that_begins_below_a_heading_is_of_an_epoch() {
    let bar = |n: u32| format!("{}%|##| {n}/4 [00:01<00:01, 4.00it/s]", n * 25);
    let mut detector = Detector::default();
    assert!(!read(&mut detector, &bar(0)).unwrap().step_in_epoch);
    assert!(read(&mut detector, "Epoch 1/3").is_none());
    assert!(!read(&mut detector, &bar(2)).unwrap().step_in_epoch, "it began before");
    let mut detector = Detector::default();
    assert!(read(&mut detector, "Epoch 1/3").is_none());
    for n in [0, 2] {
        let found = read(&mut detector, &bar(n)).unwrap();
        assert_eq!((found.step_in_epoch, found.total_epochs), (true, Some(3)));
    }
}

#[test]
fn rank_at_the_end_of_a_line_follows_a_number() {
    for (line, rank) in [
        ("lr 0.001 rank 0", Some(0)),
        ("lr: 0.5, rank 12", Some(12)),
        ("[3/5] rank 1", Some(1)),
        ("the effective rank 12", None),
        ("lora rank 8", None),
        ("0.5 rank 1234567", None),
        ("0.5 rank ", None),
        ("rank 3", None),
        ("", None),
    ] {
        assert_eq!(rank_at_end(line), rank, "{line}");
    }
}
