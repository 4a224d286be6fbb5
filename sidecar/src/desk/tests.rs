use proptest::prelude::*;

use super::*;

fn loss(name: &str, phase: Phase, span: Span, value: f64) -> Loss {
    Loss { name: name.to_owned(), phase, span, value }
}

fn step(step: u64, value: f64) -> Observation {
    let losses = vec![loss("loss", Phase::Train, Span::Step, value)];
    Observation { step: Some(step), losses, ..Observation::default() }
}

fn take(desk: &mut Desk, source: SourceId, observation: &Observation, now: f64) -> Vec<Entry> {
    let mut entries = Vec::new();
    desk.take(source, observation, now, |entry| entries.push(entry));
    entries
}

#[test]
fn one_source_is_believed_and_a_better_one_takes_its_place() {
    let mut desk = Desk::default();
    let (events, text) = (desk.add(Kind::Events), desk.add(Kind::Text));
    assert_eq!(take(&mut desk, events, &step(1, 9.0), 0.0), [Entry::Loss(9.0), Entry::Step(1)]);
    assert_eq!(take(&mut desk, text, &step(2, 8.0), 1.0), [Entry::Loss(8.0), Entry::Step(2)]);
    assert_eq!(take(&mut desk, events, &step(2, 8.0), 2.0), []);
    assert_eq!(desk.loss_from(), Some(text));
}

#[test]
fn the_finest_loss_is_taken_and_what_says_the_same_again_is_not() {
    let mut desk = Desk::default();
    let text = desk.add(Kind::Text);
    let mean = |span| Observation {
        losses: vec![loss("Average loss", Phase::Train, span, 5.0)],
        ..Observation::default()
    };
    take(&mut desk, text, &step(1, 6.0), 0.0);
    for span in [Span::Epoch, Span::Run, Span::Interval] {
        assert_eq!(take(&mut desk, text, &mean(span), 1.0), []);
    }
    assert_eq!(desk.loss_span(), Some(Span::Step));
}

#[test]
fn losses_on_held_out_data_are_kept_apart() {
    let mut desk = Desk::default();
    let text = desk.add(Kind::Text);
    let losses = vec![
        loss("loss", Phase::Train, Span::EpochSoFar, 3.0),
        loss("val_loss", Phase::Validation, Span::Epoch, 4.0),
    ];
    let both = Observation { losses, ..Observation::default() };
    let entries = take(&mut desk, text, &both, 0.0);
    assert_eq!(entries, [Entry::Validation(4.0), Entry::Loss(3.0)]);
}

#[test]
fn a_person_may_name_the_loss() {
    let mut desk = Desk::new(Hints { loss: Some("Loss_G".to_owned()), batch_size: None });
    let text = desk.add(Kind::Text);
    let losses = vec![
        loss("Loss_D", Phase::Train, Span::Step, 1.0),
        loss("Loss_G", Phase::Train, Span::Step, 2.0),
    ];
    let both = Observation { losses, ..Observation::default() };
    assert_eq!(take(&mut desk, text, &both, 0.0), [Entry::Loss(2.0)]);
    assert_eq!(take(&mut Desk::default(), SourceId(0), &both, 0.0), [], "there is no such source");
}

#[test]
fn of_many_ranks_the_lowest_is_the_job_and_each_has_its_latency() {
    let mut desk = Desk::default();
    let text = desk.add(Kind::Text);
    let of = |rank, number: u64| Observation {
        rank: Some(rank),
        batch_seconds: Some(0.1 * f64::from(rank + 1)),
        ..step(number, 1.0)
    };
    assert_eq!(take(&mut desk, text, &of(1, 1), 0.0).len(), 2, "nobody else has spoken yet");
    assert_eq!(take(&mut desk, text, &of(0, 1), 0.0).len(), 2);
    for number in 2..5 {
        assert_eq!(take(&mut desk, text, &of(1, number), 1.0), []);
        let entries = take(&mut desk, text, &of(0, number), 1.0);
        assert_eq!(entries, [Entry::Batch(0.1), Entry::Loss(1.0), Entry::Step(number)]);
    }
    let ranks: Vec<_> = desk.ranks().map(|(rank, count, _)| (rank, count)).collect();
    assert_eq!(ranks, [(0, 3), (1, 3)]);
}

#[test]
fn steps_of_an_epoch_are_counted_through() {
    let mut desk = Desk::default();
    let text = desk.add(Kind::Text);
    let at = |epoch: f64, number| Observation {
        step_in_epoch: true,
        epoch: Some(epoch),
        total_steps: Some(100),
        total_epochs: Some(3),
        ..step(number, 1.0)
    };
    let last = |entries: Vec<Entry>| entries.last().copied();
    assert_eq!(last(take(&mut desk, text, &at(1.0, 10), 0.0)), Some(Entry::Step(10)));
    let entries = take(&mut desk, text, &at(2.0, 10), 0.0);
    assert_eq!(entries.first(), Some(&Entry::TotalSteps(300)));
    assert!(entries.contains(&Entry::Epoch(2)) && entries.contains(&Entry::Step(110)));
    let mut from_zero = Desk::default();
    let text = from_zero.add(Kind::Text);
    take(&mut from_zero, text, &at(0.0, 10), 0.0);
    assert_eq!(last(take(&mut from_zero, text, &at(1.0, 10), 0.0)), Some(Entry::Step(110)));
}

#[test]
fn samples_are_steps_once_the_batch_is_known() {
    for (batch_size, expected) in [(None, None), (Some(64), Some(Entry::Step(10)))] {
        let mut desk = Desk::new(Hints { loss: None, batch_size });
        let text = desk.add(Kind::Text);
        let samples = Observation {
            step_in_samples: true,
            step_in_epoch: true,
            epoch: Some(1.0),
            total_steps: Some(60_000),
            ..step(640, 1.0)
        };
        let entries = take(&mut desk, text, &samples, 0.0);
        let step = entries.iter().copied().find(|entry| matches!(entry, Entry::Step(_)));
        assert_eq!(step, expected);
    }
}

#[test]
fn a_latency_that_nobody_says_is_inferred_from_the_lines() {
    let mut desk = Desk::default();
    let text = desk.add(Kind::Text);
    let mut batches = Vec::new();
    // Ten steps a line, a line a second; the first took a minute, and an evaluation a while.
    for (line, now) in [(1, 60.0), (2, 61.0), (3, 62.0), (4, 63.0), (5, 90.0), (6, 91.0), (7, 92.0)]
    {
        if line == 5 {
            let losses = vec![loss("val_loss", Phase::Validation, Span::Epoch, 1.0)];
            let validation = Observation { losses, ..Observation::default() };
            take(&mut desk, text, &validation, 89.0);
        }
        let entries = take(&mut desk, text, &step(line * 10, 1.0), now);
        batches.extend(entries.into_iter().filter(|entry| matches!(entry, Entry::Batch(_))));
    }
    assert_eq!(batches, [Entry::Batch(0.1); 3]);
    assert_eq!(desk.latency_from(), Some(LatencyFrom::Inferred));
}

#[test]
fn blocks_of_a_buffer_are_seen_as_such_and_still_give_the_mean() {
    let mut desk = Desk::default();
    let text = desk.add(Kind::Text);
    let mut batches = Vec::new();
    for number in 0..100_u32 {
        let now = f64::from(number / 20) * 2.0;
        let entries = take(&mut desk, text, &step(number.into(), 1.0), now);
        batches.extend(entries.into_iter().filter(|entry| matches!(entry, Entry::Batch(_))));
    }
    assert!(desk.is_block_buffered());
    assert_eq!(batches, [Entry::Batch(0.1), Entry::Batch(0.1)]);
}

#[test]
fn what_the_framework_says_is_taken_but_for_the_first_time() {
    let mut desk = Desk::default();
    let text = desk.add(Kind::Text);
    let said = |number, seconds| Observation { batch_seconds: Some(seconds), ..step(number, 1.0) };
    let first = take(&mut desk, text, &said(1, 30.0), 0.0);
    assert_eq!(first, [Entry::Loss(1.0), Entry::Step(1)]);
    let second = take(&mut desk, text, &said(2, 0.2), 1.0);
    assert_eq!(second, [Entry::Batch(0.2), Entry::Loss(1.0), Entry::Step(2)]);
    assert_eq!(desk.latency_from(), Some(LatencyFrom::Reported));
}

fn any_observation() -> impl Strategy<Value = Observation> {
    let counts = (any::<Option<u64>>(), any::<bool>(), any::<bool>(), any::<Option<u64>>());
    let times = (any::<Option<f64>>(), any::<Option<f64>>(), any::<Option<u64>>());
    (counts, times, any::<Option<u32>>(), any::<Option<f64>>()).prop_map(
        |(counts, times, rank, value)| {
            let losses = value.map(|value| loss("loss", Phase::Train, Span::Step, value));
            Observation {
                at: times.0,
                step: counts.0,
                step_in_epoch: counts.1,
                step_in_samples: counts.2,
                total_steps: counts.3,
                epoch: times.1,
                total_epochs: times.2,
                batch_seconds: times.0,
                rank: rank.map(|rank| rank % 4),
                losses: losses.into_iter().collect(),
            }
        },
    )
}

proptest! {
    #[test]
    fn nothing_that_is_said_is_too_strange(
        said in prop::collection::vec((any_observation(), any::<f64>()), 0..40),
        batch_size in any::<Option<u64>>(),
    ) {
        let mut desk = Desk::new(Hints { loss: None, batch_size });
        let sources = [desk.add(Kind::Text), desk.add(Kind::Push)];
        for (at, (observation, now)) in said.iter().enumerate() {
            for entry in take(&mut desk, sources[at % 2], observation, *now) {
                if let Entry::Batch(seconds) = entry {
                    prop_assert!(seconds > 0.0);
                }
            }
        }
    }
}
