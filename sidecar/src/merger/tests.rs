use paceline_lines::observation::Elapsed;
use proptest::prelude::*;

use super::*;

fn loss(name: &str, phase: Phase, span: Span, value: f64) -> Loss {
    Loss { name: name.to_owned(), phase, span, value }
}

fn step(step: u64, value: f64) -> Observation {
    let losses = vec![loss("loss", Phase::Train, Span::Step, value)];
    Observation { step: Some(step), losses, ..Observation::default() }
}

fn take(merger: &mut Merger, source: SourceId, observation: &Observation, now: f64) -> Vec<Entry> {
    let mut entries = Vec::new();
    merger.take(source, observation, now, |entry| entries.push(entry));
    entries
}

#[test]
fn preferred_source_replaces_the_chosen_one() {
    let mut merger = Merger::default();
    let (events, text) = (merger.add(Kind::Events), merger.add(Kind::Text));
    assert_eq!(take(&mut merger, events, &step(1, 9.0), 0.0), [Entry::Loss(9.0), Entry::Step(1)]);
    assert_eq!(take(&mut merger, text, &step(2, 8.0), 1.0), [Entry::Loss(8.0), Entry::Step(2)]);
    assert_eq!(take(&mut merger, events, &step(2, 8.0), 2.0), []);
    assert_eq!(merger.loss_from(), Some(text));
}

#[test]
fn finest_loss_is_reported_and_coarser_ones_are_ignored() {
    let mut merger = Merger::default();
    let text = merger.add(Kind::Text);
    let mean = |span| Observation {
        losses: vec![loss("Average loss", Phase::Train, span, 5.0)],
        ..Observation::default()
    };
    take(&mut merger, text, &step(1, 6.0), 0.0);
    for span in [Span::Epoch, Span::Run, Span::Interval] {
        assert_eq!(take(&mut merger, text, &mean(span), 1.0), []);
    }
    assert_eq!(merger.loss_span(), Some(Span::Step));
}

#[test]
fn losses_on_held_out_data_are_kept_apart() {
    let mut merger = Merger::default();
    let text = merger.add(Kind::Text);
    let losses = vec![
        loss("loss", Phase::Train, Span::EpochSoFar, 3.0),
        loss("val_loss", Phase::Validation, Span::Epoch, 4.0),
    ];
    let both = Observation { losses, ..Observation::default() };
    let entries = take(&mut merger, text, &both, 0.0);
    assert_eq!(entries, [Entry::Validation(4.0), Entry::Loss(3.0)]);
}

#[test]
fn largest_step_is_followed_by_lines_without_a_step() {
    let mut merger = Merger::default();
    let text = merger.add(Kind::Text);
    take(&mut merger, text, &step(u64::MAX, 6.0), 0.0);
    let without = Observation { step: None, ..step(0, 5.0) };
    for now in [1.0, 1.001, 2.0] {
        assert_eq!(take(&mut merger, text, &without, now).first(), Some(&Entry::Loss(5.0)));
    }
}

#[test]
fn same_step_from_two_loggers_is_reported_once() {
    let mut merger = Merger::default();
    let text = merger.add(Kind::Text);
    assert_eq!(take(&mut merger, text, &step(5, 3.0), 0.0).len(), 2);
    assert_eq!(take(&mut merger, text, &step(5, 3.0), 0.0), [Entry::Step(5)]);
    assert_eq!(take(&mut merger, text, &step(6, 2.0), 0.0).len(), 2);
    assert_eq!(take(&mut merger, text, &step(6, 2.5), 0.0), [Entry::Step(6)]);
    // A restart goes back.
    assert_eq!(take(&mut merger, text, &step(5, 3.0), 0.0).len(), 2);
}

#[test]
fn counter_that_has_not_advanced_may_be_of_other_epochs() {
    let mut merger = Merger::default();
    let text = merger.add(Kind::Text);
    for value in [3.0, 2.0, 1.0] {
        let entries = take(&mut merger, text, &step(100, value), 0.0);
        assert_eq!(entries, [Entry::Loss(value), Entry::Step(100)]);
    }
}

#[test]
fn main_loss_replaces_parts_of_a_loss() {
    let of = |names: &[&str], number| {
        let losses = names
            .iter()
            .zip(1_u32..)
            .map(|(name, value)| loss(name, Phase::Train, Span::Step, value.into()));
        Observation { losses: losses.collect(), ..step(number, 0.0) }
    };
    for kind in [Kind::Text, Kind::Csv, Kind::Events] {
        let mut merger = Merger::default();
        let source = merger.add(kind);
        let both = of(&["loss/box", "loss/cls", "loss/total"], 1);
        assert_eq!(take(&mut merger, source, &both, 0.0), [Entry::Loss(3.0), Entry::Step(1)]);
        let parts = take(&mut merger, source, &of(&["loss/box"], 2), 0.0);
        assert!(!parts.contains(&Entry::Loss(1.0)), "{kind:?}");
        let mut gone = 0;
        while !take(&mut merger, source, &of(&["loss/box"], 3 + gone), 0.0)
            .contains(&Entry::Loss(1.0))
        {
            gone += 1;
        }
        assert!((5..50).contains(&gone), "{kind:?}: the main loss has ended");
    }
}

#[test]
fn tags_of_event_files_wait_for_the_main_loss() {
    let of = |name, number| Observation {
        losses: vec![loss(name, Phase::Train, Span::Step, 1.0)],
        ..step(number, 0.0)
    };
    let mut merger = Merger::default();
    let events = merger.add(Kind::Events);
    assert_eq!(take(&mut merger, events, &of("loss/box", 1), 0.0), []);
    assert_eq!(take(&mut merger, events, &of("loss/total", 1), 0.0).len(), 2);
    assert!(!take(&mut merger, events, &of("loss/box", 2), 0.0).contains(&Entry::Loss(1.0)));
    // Without a main loss, nothing is lost.
    let mut merger = Merger::default();
    let events = merger.add(Kind::Events);
    assert_eq!(take(&mut merger, events, &of("loss/box", 1), 0.0), []);
    let entries = take(&mut merger, events, &of("loss/box", 2), 0.0);
    let expected = [Entry::Loss(1.0), Entry::Step(1), Entry::Loss(1.0), Entry::Step(2)];
    assert_eq!(entries, expected);
}

#[test]
fn later_event_of_another_tag_does_not_move_the_step_back() {
    let mut merger = Merger::default();
    let events = merger.add(Kind::Events);
    take(&mut merger, events, &step(500, 1.0), 0.0);
    let losses = vec![loss("val/loss", Phase::Validation, Span::Epoch, 2.0)];
    let by_epoch = Observation { losses, ..step(3, 0.0) };
    assert_eq!(take(&mut merger, events, &by_epoch, 0.0), [Entry::Validation(2.0)]);
}

#[test]
fn time_of_an_evaluation_is_not_that_of_a_batch() {
    let mut merger = Merger::default();
    let text = merger.add(Kind::Text);
    let said = |observation| Observation { batch_seconds: Some(0.25), ..observation };
    take(&mut merger, text, &said(step(1, 1.0)), 0.0);
    let losses = vec![loss("val_loss", Phase::Validation, Span::Epoch, 2.0)];
    let entries =
        take(&mut merger, text, &said(Observation { losses, ..Observation::default() }), 1.0);
    assert_eq!(entries, [Entry::Validation(2.0)]);
}

#[test]
fn time_beside_another_part_of_a_loss_is_not_counted_again() {
    let mut merger = Merger::default();
    let text = merger.add(Kind::Text);
    let part = |number, name| Observation {
        batch_seconds: Some(0.25),
        losses: vec![loss(name, Phase::Train, Span::Step, 2.0)],
        ..step(number, 0.0)
    };
    take(&mut merger, text, &part(1, "mel_loss"), 0.0);
    assert_eq!(take(&mut merger, text, &part(1, "stop_loss"), 0.0), [Entry::Step(1)]);
    let first = take(&mut merger, text, &part(2, "mel_loss"), 0.0);
    assert_eq!(first, [Entry::Batch(0.25), Entry::Loss(2.0), Entry::Step(2)]);
    assert_eq!(take(&mut merger, text, &part(2, "stop_loss"), 0.0), [Entry::Step(2)]);
}

#[test]
fn loss_is_chosen_by_name() {
    let mut merger = Merger::new(Hints { loss: Some("Loss_G".to_owned()), ..Hints::default() });
    let text = merger.add(Kind::Text);
    let losses = vec![
        loss("Loss_D", Phase::Train, Span::Step, 1.0),
        loss("Loss_G", Phase::Train, Span::Step, 2.0),
    ];
    let both = Observation { losses, ..Observation::default() };
    assert_eq!(take(&mut merger, text, &both, 0.0), [Entry::Loss(2.0)]);
    assert_eq!(take(&mut Merger::default(), SourceId(0), &both, 0.0), [], "unknown source");
}

#[test]
fn lowest_rank_is_reported_and_each_rank_has_its_latency() {
    let mut merger = Merger::default();
    let text = merger.add(Kind::Text);
    let of = |rank, number: u64| Observation {
        rank: Some(rank),
        batch_seconds: Some(0.1 * f64::from(rank + 1)),
        ..step(number, 1.0)
    };
    assert_eq!(take(&mut merger, text, &of(1, 1), 0.0).len(), 2, "no other rank has reported yet");
    assert_eq!(take(&mut merger, text, &of(0, 1), 0.0), [Entry::Step(1)], "the same loss");
    for number in 2..5 {
        assert_eq!(take(&mut merger, text, &of(1, number), 1.0), []);
        let entries = take(&mut merger, text, &of(0, number), 1.0);
        assert_eq!(entries, [Entry::Batch(0.1), Entry::Loss(1.0), Entry::Step(number)]);
    }
    let ranks: Vec<_> = merger.ranks().map(|(rank, count, _)| (rank, count)).collect();
    assert_eq!(ranks, [(0, 3), (1, 3)]);
}

#[test]
fn endless_ranks_are_bounded_and_the_lowest_ones_stay() {
    let mut merger = Merger::default();
    let push = merger.add(Kind::Push);
    let of = |rank, number| Observation { rank: Some(rank), ..step(number, 1.0) };
    for rank in 1..100_000 {
        take(&mut merger, push, &of(rank, 1), 0.0);
    }
    assert_eq!(take(&mut merger, push, &of(0, 7), 1.0), [Entry::Loss(1.0), Entry::Step(7)]);
    assert!(merger.ranks().map(|(rank, _, _)| rank).eq(0..512));
}

#[test]
fn losses_of_a_higher_rank_are_not_repeated() {
    let mut merger = Merger::default();
    let text = merger.add(Kind::Text);
    let of = |rank, number: u64, value| Observation { rank: Some(rank), ..step(number, value) };
    for number in 1..4 {
        take(&mut merger, text, &of(1, number, 2.5), 0.0);
    }
    for number in 1..4 {
        let entries = take(&mut merger, text, &of(0, number, 2.0), 0.0);
        assert!(!entries.iter().any(|entry| matches!(entry, Entry::Loss(_))), "{entries:?}");
    }
    let entries = take(&mut merger, text, &of(0, 4, 1.5), 0.0);
    assert_eq!(entries, [Entry::Loss(1.5), Entry::Step(4)]);
    let mut merger = Merger::default();
    let text = merger.add(Kind::Text);
    let plain = |rank, value| Observation { step: None, ..of(rank, 0, value) };
    assert_eq!(take(&mut merger, text, &plain(1, 2.5), 0.0), [Entry::Loss(2.5)]);
    assert_eq!(take(&mut merger, text, &plain(0, 2.0), 0.0), []);
    assert_eq!(take(&mut merger, text, &plain(0, 1.5), 0.0), [Entry::Loss(1.5)]);
}

#[test]
fn steps_of_epochs_add_up() {
    let mut merger = Merger::default();
    let text = merger.add(Kind::Text);
    let at = |epoch: f64, number| Observation {
        step_in_epoch: true,
        epoch: Some(epoch),
        total_steps: Some(100),
        total_epochs: Some(3),
        ..step(number, 1.0)
    };
    let last = |entries: Vec<Entry>| entries.last().copied();
    let entries = take(&mut merger, text, &at(1.0, 10), 0.0);
    assert_eq!(entries.first(), Some(&Entry::TotalSteps(Some(300))));
    assert_eq!(last(entries), Some(Entry::Step(10)));
    let entries = take(&mut merger, text, &at(2.0, 10), 0.0);
    assert!(entries.contains(&Entry::Epoch(2)) && entries.contains(&Entry::Step(110)));
    let mut from_zero = Merger::default();
    let text = from_zero.add(Kind::Text);
    take(&mut from_zero, text, &at(0.0, 10), 0.0);
    assert_eq!(last(take(&mut from_zero, text, &at(1.0, 10), 0.0)), Some(Entry::Step(110)));
}

#[test]
fn samples_become_steps_if_the_batch_size_is_known() {
    for (batch_size, expected) in [(None, None), (Some(64), Some(Entry::Step(10)))] {
        let mut merger = Merger::new(Hints { batch_size, ..Hints::default() });
        let text = merger.add(Kind::Text);
        let samples = Observation {
            step_in_samples: true,
            step_in_epoch: true,
            epoch: Some(1.0),
            total_steps: Some(60_000),
            ..step(640, 1.0)
        };
        let entries = take(&mut merger, text, &samples, 0.0);
        let step = entries.iter().copied().find(|entry| matches!(entry, Entry::Step(_)));
        assert_eq!(step, expected);
    }
}

#[test]
fn unreported_latency_is_inferred_from_the_lines() {
    let mut merger = Merger::default();
    let text = merger.add(Kind::Text);
    let mut batches = Vec::new();
    // Ten steps per line, one line per second. The first takes a minute, an evaluation 27 s.
    for (line, now) in [(1, 60.0), (2, 61.0), (3, 62.0), (4, 63.0), (5, 90.0), (6, 91.0), (7, 92.0)]
    {
        if line == 5 {
            let losses = vec![loss("val_loss", Phase::Validation, Span::Epoch, 1.0)];
            let validation = Observation { losses, ..Observation::default() };
            take(&mut merger, text, &validation, 89.0);
        }
        let entries = take(&mut merger, text, &step(line * 10, 1.0), now);
        batches.extend(entries.into_iter().filter(|entry| matches!(entry, Entry::Batch(_))));
    }
    assert_eq!(batches, [Entry::Batch(0.1); 3]);
    assert_eq!(merger.latency_from(), Some(LatencyFrom::Inferred));
}

#[test]
fn block_buffered_lines_are_detected_and_give_the_mean() {
    let mut merger = Merger::default();
    let text = merger.add(Kind::Text);
    let mut batches = Vec::new();
    for number in 0..100_u32 {
        let now = f64::from(number / 20) * 2.0;
        let entries = take(&mut merger, text, &step(number.into(), 1.0), now);
        batches.extend(entries.into_iter().filter(|entry| matches!(entry, Entry::Batch(_))));
    }
    assert!(merger.is_block_buffered());
    assert_eq!(batches, [Entry::Batch(0.1), Entry::Batch(0.1)]);
}

#[test]
fn reported_latency_is_used_except_the_first() {
    let mut merger = Merger::default();
    let text = merger.add(Kind::Text);
    let said = |number, seconds| Observation { batch_seconds: Some(seconds), ..step(number, 1.0) };
    let first = take(&mut merger, text, &said(1, 30.0), 0.0);
    assert_eq!(first, [Entry::Loss(1.0), Entry::Step(1)]);
    let second = take(&mut merger, text, &said(2, 0.2), 1.0);
    assert_eq!(second, [Entry::Batch(0.2), Entry::Loss(1.0), Entry::Step(2)]);
    assert_eq!(merger.latency_from(), Some(LatencyFrom::Reported));
}

fn bar(step: u64, total: u64) -> Observation {
    Observation { step: Some(step), total_steps: Some(total), ..Observation::default() }
}

#[test]
fn total_comes_with_its_steps_from_another_source_than_losses() {
    let mut merger = Merger::default();
    let (text, events) = (merger.add(Kind::Text), merger.add(Kind::Events));
    let entries = take(&mut merger, text, &bar(10, 900), 0.0);
    assert_eq!(entries, [Entry::TotalSteps(Some(900)), Entry::Step(10)]);
    let entries = take(&mut merger, events, &step(5, 3.0), 1.0);
    assert_eq!(entries, [Entry::TotalSteps(None), Entry::Loss(3.0), Entry::Step(5)]);
    assert_eq!(take(&mut merger, text, &bar(10, 900), 2.0), [], "it does not advance");
    let entries = take(&mut merger, text, &bar(30, 900), 3.0);
    assert_eq!(entries, [Entry::TotalSteps(Some(900)), Entry::Step(30)]);
    let entries = take(&mut merger, events, &step(6, 2.0), 4.0);
    assert_eq!(entries, [Entry::Loss(2.0), Entry::Step(30)], "a loss does not add a step");
    let entries =
        take(&mut merger, events, &Observation { total_steps: Some(70), ..step(7, 1.0) }, 5.0);
    assert_eq!(entries, [Entry::TotalSteps(Some(70)), Entry::Loss(1.0), Entry::Step(7)]);
}

#[test]
fn total_that_does_not_change_is_reported_once() {
    let mut merger = Merger::new(Hints { total_steps: Some(900), ..Hints::default() });
    let text = merger.add(Kind::Text);
    assert_eq!(take(&mut merger, text, &bar(1, 900), 0.0), [Entry::Step(1)]);
    assert_eq!(take(&mut merger, text, &bar(2, 900), 1.0), [Entry::Step(2)]);
    let entries = take(&mut merger, text, &bar(3, 950), 2.0);
    assert_eq!(entries, [Entry::TotalSteps(Some(950)), Entry::Step(3)]);
}

#[test]
fn expectation_of_any_source_is_reported() {
    let mut merger = Merger::default();
    let (text, push) = (merger.add(Kind::Text), merger.add(Kind::Push));
    take(&mut merger, text, &step(1, 1.0), 0.0);
    let expects = Observation { expected_steps: Some(300), ..Observation::default() };
    assert_eq!(take(&mut merger, push, &expects, 1.0), [Entry::ExpectedSteps(300)]);
}

#[test]
fn line_about_the_whole_run_is_not_a_batch() {
    let mut merger = Merger::default();
    let text = merger.add(Kind::Text);
    let plan = Observation { total_epochs: Some(3), ..Observation::default() };
    for now in [0.0, 1.0, 2.0, 3.0] {
        assert_eq!(take(&mut merger, text, &plan, now), []);
    }
    assert_eq!(merger.latency_from(), None);
}

fn any_observation() -> impl Strategy<Value = Observation> {
    let count = || prop::option::of(prop_oneof![4 => 0..50_u64, 1 => any::<u64>()]);
    let epoch = prop::option::of(prop_oneof![(0..5_u32).prop_map(f64::from), any::<f64>()]);
    let counts = (count(), any::<bool>(), any::<bool>(), count());
    let times = (any::<Option<f64>>(), epoch, count());
    let totals = (prop::option::of(1..50_u64), prop::option::of(0.0..=1.0));
    let losses = (any::<Option<f64>>(), any::<bool>(), any::<bool>());
    (counts, times, any::<Option<u32>>(), totals, losses).prop_map(
        |(counts, times, rank, (expected_steps, done), (value, trains, of_epoch))| {
            let phase = if trains { Phase::Train } else { Phase::Validation };
            let span = if of_epoch { Span::Epoch } else { Span::Step };
            let losses = value.map(|value| loss("loss", phase, span, value));
            Observation {
                at: times.0,
                step: counts.0,
                step_in_epoch: counts.1,
                step_in_samples: counts.2,
                is_rough: counts.1,
                total_steps: counts.3,
                expected_steps,
                done,
                epoch: times.1,
                epochs_from_zero: counts.2,
                total_epochs: times.2,
                batch_size: times.2,
                batch_seconds: times.0,
                elapsed: times.0.map(|seconds| Elapsed { seconds, is_named: trains }),
                warm: counts.1,
                rank: rank.map(|rank| rank % 4),
                of_unnamed_loop: trains && counts.1,
                losses: losses.into_iter().collect(),
            }
        },
    )
}

proptest! {
    #[test]
    fn any_observations_are_accepted(
        said in prop::collection::vec((any_observation(), any::<f64>()), 0..40),
        batch_size in any::<Option<u64>>(),
    ) {
        let mut merger = Merger::new(Hints { batch_size, ..Hints::default() });
        let sources = [merger.add(Kind::Text), merger.add(Kind::Push), merger.add(Kind::Csv)];
        for (at, (observation, now)) in said.iter().enumerate() {
            for entry in take(&mut merger, sources[at % 3], observation, *now) {
                match entry {
                    Entry::Batch(seconds) => prop_assert!(seconds > 0.0),
                    Entry::ExpectedSteps(steps) => prop_assert!(steps > 0),
                    Entry::Loss(_) | Entry::Validation(_) | Entry::Step(_) | Entry::Epoch(_) | Entry::TotalSteps(_) => {}
                }
            }
        }
    }
}

proptest! {
    /// Bars of any number of epochs, with a validation after each.
    #[test]
    fn steps_of_bars_grow_up_to_the_total(
        length in 2..60_u64,
        epochs in 1..6_u64,
        validation in 1..60_u64,
        stride in 1..7_usize,
        from_zero in any::<bool>(),
    ) {
        let mut merger = Merger::default();
        let text = merger.add(Kind::Text);
        let (mut step, mut total) = (0, None);
        let validation = Some(validation).filter(|other| *other != length);
        for epoch in 0..epochs {
            let number = f64::from(u32::try_from(epoch).unwrap()) + f64::from(!from_zero);
            for length in std::iter::once(length).chain(validation) {
                for done in (0..length).step_by(stride).chain([length]) {
                    let frame = Observation {
                        step_in_epoch: true,
                        epoch: Some(number),
                        total_epochs: Some(epochs),
                        ..bar(done, length)
                    };
                    for entry in take(&mut merger, text, &frame, 0.0) {
                        match entry {
                            Entry::Step(reached) => {
                                prop_assert!(reached >= step, "{} {}", reached, step);
                                step = reached;
                            }
                            Entry::TotalSteps(reported) => {
                                prop_assert_eq!(total, None);
                                total = reported;
                            }
                            Entry::Loss(_)
| Entry::Validation(_) | Entry::Batch(_) | Entry::Epoch(_) | Entry::ExpectedSteps(_) => {}
                        }
                    }
                }
            }
        }
        prop_assert_eq!((step, total), (length * epochs, Some(length * epochs)));
    }
}
