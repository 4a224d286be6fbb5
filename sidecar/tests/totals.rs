//! The total number of steps, and the step that belongs to it, from every kind of progress.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

#[expect(dead_code, reason = "other tests need more of it")]
mod support;

use paceline_lines::observation::Observation;
use paceline_sidecar::merger::{Entry, Hints, Kind, Merger};
use paceline_sidecar::push::{report, trainer_status};

use support::{Fixture, sources};

/// The position of a job, as its endpoint would publish it.
#[derive(Debug, Default, PartialEq)]
struct Place {
    step: u64,
    total: Option<u64>,
}

impl Place {
    fn enter(&mut self, entry: Entry) {
        match entry {
            Entry::Loss(_) => self.step += 1,
            Entry::Step(step) => self.step = step,
            Entry::TotalSteps(total) => self.total = total,
            Entry::Validation(_) | Entry::Batch(_) | Entry::Epoch(_) | Entry::ExpectedSteps(_) => {}
        }
    }
}

/// The positions after each observation of a source of this kind.
fn places(kind: Kind, hints: Hints, said: &[Observation]) -> Vec<Place> {
    let mut merger = Merger::new(hints);
    let source = merger.add(kind);
    let mut place = Place::default();
    let step = |observation: &Observation| {
        merger.take(source, observation, 0.0, |entry| place.enter(entry));
        Place { ..place }
    };
    said.iter().map(step).collect()
}

/// The observations in a text.
fn said(text: &str) -> Vec<Observation> {
    let mut found = Vec::new();
    let mut reader = sources::reader();
    reader.feed(text.as_bytes(), &mut |one| found.push(one.clone()));
    reader.finish(&mut |one| found.push(one.clone()));
    found
}

fn of_text(text: &str) -> Vec<Place> {
    places(Kind::Text, Hints::default(), &said(text))
}

fn at(step: u64, total: u64) -> Place {
    Place { step, total: Some(total) }
}

/// Frames of tqdm, from descriptions, counters and totals.
fn tqdm(frames: &[(&str, u64, u64)]) -> String {
    let frame = |(desc, n, total): &(&str, u64, u64)| {
        let loss = if *n > 0 { format!(", loss={n}.5") } else { String::new() };
        format!("\r{desc}: {}%|##| {n}/{total} [00:01<00:01, 4.00it/s{loss}]", n * 100 / total)
    };
    frames.iter().map(frame).collect()
}

#[test]
fn steps_of_bars_add_up_over_epochs() {
    for (name, text, last) in [
        (
            "tqdm",
            tqdm(&[
                ("Epoch 1/3", 0, 4),
                ("Epoch 1/3", 4, 4),
                ("Epoch 2/3", 0, 4),
                ("Epoch 2/3", 2, 4),
            ]),
            at(6, 12),
        ),
        (
            "keras",
            "Epoch 1/5\n8/8 ━━━━ 1s 5ms/step - loss: 0.5000\nEpoch 2/5\n\
             3/8 ━━━━ 1s 5ms/step - loss: 0.4000\r"
                .to_owned(),
            at(11, 40),
        ),
        (
            "rich",
            "Epoch 0/2 ━━━━ 4/4 0:00:01 • 0:00:00 4.00it/s loss: 2.0\r\
             Epoch 1/2 ━━━━ 0/4 0:00:00 • -:--:-- 4.00it/s loss: 2.0\r\
             Epoch 1/2 ╸━━━ 1/4 0:00:01 • 0:00:03 4.00it/s loss: 1.0\r"
                .to_owned(),
            at(5, 12),
        ),
        (
            "fastai",
            "Epoch 1/2 : |████| 100.00% [5/5 00:00<00:00 0.5123]\r\
             Epoch 1/2 : |██--| 50.00% [1/2 00:00<00:00 0.5123]\r\
             Epoch 2/2 : |██--| 40.00% [2/5 00:00<00:00 0.4123]\r"
                .to_owned(),
            at(7, 10),
        ),
        ("key value", "Epoch 2/3, batch 5/100, loss: 0.5\n".to_owned(), at(105, 300)),
        ("dcgan", "[1/5][10/100] Loss_D: 1.0 Loss_G: 2.0\n".to_owned(), at(10, 500)),
    ] {
        let all = of_text(&text);
        assert_eq!(all.last(), Some(&last), "{name}: {all:?}");
        assert!(all.windows(2).all(|pair| pair[0].total == pair[1].total), "{name}: {all:?}");
    }
}

#[test]
fn epochs_are_read_from_headings_settings_and_outer_bars() {
    let inner = tqdm(&[("", 0, 4), ("", 4, 4), ("", 0, 4), ("", 2, 4)]);
    let outer = |n| format!("\rEpochs: {n}%|##| {n}/3 [00:01<00:01, 1.00s/it]");
    let [first, second] = [[("", 0, 4), ("", 4, 4)], [("", 0, 4), ("", 2, 4)]].map(|f| tqdm(&f));
    for (name, text) in [
        ("heading", format!("Epoch 1/3\n{first}\nEpoch 2/3\n{second}")),
        ("setting", format!("Namespace(lr=0.1, epochs=3)\n{inner}")),
        ("outer bar", format!("{}{first}{}{second}", outer(0), outer(1))),
    ] {
        let all = of_text(&text);
        assert_eq!(all.last(), Some(&at(6, 12)), "{name}: {all:?}");
    }
}

#[test]
fn bar_of_the_whole_run_gives_the_total_at_once() {
    let all = of_text(&tqdm(&[("", 0, 900), ("", 1, 900), ("", 450, 900)]));
    assert_eq!(all, [at(0, 900), at(1, 900), at(450, 900)]);
}

#[test]
fn total_is_withdrawn_if_a_bar_is_of_an_epoch() {
    let all = of_text(&tqdm(&[("", 0, 4), ("", 4, 4), ("", 0, 4), ("", 2, 4)]));
    assert_eq!(all.last(), Some(&Place { step: 6, total: None }), "{all:?}");
    let hints = Hints { total_steps: Some(80), ..Hints::default() };
    let text = tqdm(&[("", 0, 4), ("", 4, 4), ("", 0, 4), ("", 2, 4)]);
    let all = places(Kind::Text, hints, &said(&text));
    assert_eq!(all.last(), Some(&at(6, 80)), "the user gave the total");
}

#[test]
fn loop_within_an_epoch_changes_neither_step_nor_total() {
    let frames = tqdm(&[
        ("Epoch 1/2", 0, 40),
        ("Epoch 1/2", 40, 40),
        // A validation without a name of its own.
        ("Epoch 1/2", 0, 10),
        ("Epoch 1/2", 1, 10),
        ("Epoch 1/2", 10, 10),
        ("Epoch 2/2", 0, 40),
        ("Epoch 2/2", 1, 40),
        ("Epoch 2/2", 40, 40),
        ("Epoch 2/2", 0, 10),
        ("Epoch 2/2", 1, 10),
        ("Epoch 2/2", 10, 10),
    ]);
    let all = of_text(&frames);
    assert!(all.iter().all(|place| place.total == Some(80)), "{all:?}");
    assert!(all.windows(2).all(|pair| pair[0].step <= pair[1].step), "{all:?}");
    assert_eq!(all.last(), Some(&at(80, 80)));
    let named = tqdm(&[
        ("Epoch 1/2", 0, 40),
        ("Epoch 1/2", 40, 40),
        ("Validation", 10, 10),
        ("Epoch 2/2", 0, 40),
        ("Epoch 2/2", 2, 40),
    ]);
    assert_eq!(of_text(&named).last(), Some(&at(42, 80)));
}

#[test]
fn held_out_lines_with_their_own_steps_are_ignored() {
    let text = "Train: epoch 1/2, batch 50/100, loss: 0.5\n\
                Validation: epoch 1/2, batch 5/10, val loss: 0.6\n";
    let all = of_text(text);
    assert!(all.iter().all(|place| *place == at(50, 200)), "{all:?}");
}

#[test]
fn epoch_is_the_step_if_only_epochs_are_counted() {
    let text = "num_epochs: 4\nepoch: 1, train_loss: 1.5, train_accuracy: 52.8, test_loss: 0.7\n\
                epoch: 2, train_loss: 0.5, train_accuracy: 85.0, test_loss: 0.4\n";
    assert_eq!(of_text(text).last(), Some(&at(2, 4)));
}

#[test]
fn total_without_steps_is_ignored() {
    // The number of steps between two lines is unknown.
    let text = "  Total optimization steps = 24\n{'loss': 3.1, 'grad_norm': 1, 'epoch': 0.5}\n";
    assert_eq!(of_text(text).last(), Some(&Place { step: 1, total: None }));
    let text = "max_iters = 600\niter 5: loss 2.75, time 14.50ms, mfu 3.21%\n";
    assert_eq!(of_text(text).last(), Some(&at(5, 600)));
}

#[test]
fn status_bodies_count_steps_or_percents() {
    let body = |text: &str| trainer_status::parse(text.as_bytes()).unwrap();
    let push = |bodies: &[Observation]| places(Kind::Push, Hints::default(), bodies);
    let percents = [
        body(r#"{"trainerStatus": {"progressPercentage": 0}}"#),
        body(
            r#"{"trainerStatus": {"progressPercentage": 45,
                "metrics": [{"name": "loss", "value": "0.5"}]}}"#,
        ),
        body(r#"{"trainerStatus": {"progressPercentage": 100}}"#),
    ];
    assert_eq!(push(&percents), [at(0, 100), at(45, 100), at(100, 100)]);
    let steps = sources::requests(&Fixture::open("hf_status").source());
    assert_eq!(push(&steps), [at(0, 24), at(15, 24), at(24, 24)]);
}

#[test]
fn pushed_total_is_used_at_once() {
    let report = |text: &str| report::parse(text.as_bytes()).unwrap();
    let all = [report(r#"{"total_steps": 50}"#), report(r#"{"loss": 1}"#)].concat();
    let all: Vec<_> = all.into_iter().map(|report| report.observation).collect();
    assert_eq!(places(Kind::Push, Hints::default(), &all), [at(0, 50), at(1, 50)]);
}

#[test]
fn steps_of_fixtures_end_at_their_totals() {
    for (name, last) in [
        ("hf_merged", at(24, 24)),
        ("keras_bar", at(24, 24)),
        ("keras_lines", at(36, 36)),
        ("tqdm_eager", at(40, 40)),
        ("tqdm_lazy", at(40, 40)),
    ] {
        let all = places(
            Kind::Text,
            Hints::default(),
            &sources::log(&Fixture::open(name).source(), usize::MAX),
        );
        assert_eq!(all.last(), Some(&last), "{name}: {all:?}");
        assert!(all.windows(2).all(|pair| pair[0].step <= pair[1].step), "{name}: {all:?}");
        assert_eq!(all.first().map(|place| place.total), Some(last.total), "{name}");
    }
    // The number of epochs is unknown.
    let said = sources::log(&Fixture::open("lightning_bar").source(), usize::MAX);
    let all = places(Kind::Text, Hints::default(), &said);
    assert_eq!(all.last(), Some(&Place { step: 24, total: None }));
}
