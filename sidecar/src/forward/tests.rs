use std::sync::mpsc::{self, Receiver, Sender};

use paceline_reporter::Reporter;
use paceline_reporter::wire::{Activity, Health, State};

use super::*;

/// A target that passes on what it is given, and waits for permission before it goes on.
#[derive(Debug)]
struct Probe {
    takes: Takes,
    got: Sender<Item>,
    go: Receiver<Result<Outcome, String>>,
}

impl Target for Probe {
    fn name(&self) -> String {
        "probe".to_owned()
    }

    fn takes(&self) -> Takes {
        self.takes
    }

    fn send(&mut self, item: &Item, _: &Ending) -> Result<Outcome, String> {
        self.got.send(item.clone()).unwrap();
        self.go.recv().unwrap_or(Ok(Outcome::Sent))
    }
}

type Answers = Sender<Result<Outcome, String>>;

/// A probe, what it was given, and what it answers.
fn probe(takes: Takes) -> (Box<dyn Target>, Receiver<Item>, Answers) {
    let (got, given) = mpsc::channel();
    let (answer, go) = mpsc::channel();
    (Box::new(Probe { takes, got, go }), given, answer)
}

fn readings(period: Duration, spacing: Duration) -> Takes {
    Takes::Readings { period, spacing }
}

/// A progress at so many seconds after the start.
pub(super) fn progress(at: f64) -> Progress {
    let reporter = Reporter::builder("vae").listen("127.0.0.1:0").hide_address().start().unwrap();
    let mut progress = reporter.progress().unwrap();
    progress.now = progress.started_at + at;
    progress.state = State::Running;
    progress
}

fn step_of(item: &Item) -> Option<u64> {
    match item {
        Item::Reading { progress, .. } => progress.step,
        Item::Event(event) => event.progress.step,
    }
}

#[test]
fn newest_reading_wins_and_replaced_ones_are_counted() {
    let (target, given, answer) = probe(readings(Duration::ZERO, Duration::ZERO));
    let forwarding = Forwarding::start(vec![target]).unwrap();
    let mut reading = progress(1.0);
    for step in 1..=5 {
        reading.step = Some(step);
        forwarding.publish(&reading, step == 5);
        if step == 1 {
            assert_eq!(step_of(&given.recv().unwrap()), Some(1));
        }
    }
    answer.send(Err("refused".to_owned())).unwrap();
    let last = given.recv().unwrap();
    assert!(matches!(last, Item::Reading { is_last: true, .. }));
    assert_eq!(step_of(&last), Some(5));
    answer.send(Ok(Outcome::Sent)).unwrap();
    forwarding.close(Duration::from_mins(1));
    let counts = &forwarding.describe()[0];
    assert_eq!((counts.sent, counts.failed, counts.dropped), (1, 1, 3));
    assert_eq!((counts.name.as_str(), counts.error.as_deref()), ("probe", None));
}

#[test]
fn target_that_hangs_delays_neither_others_nor_the_end() {
    let (hanging, hangs, never) = probe(readings(Duration::ZERO, Duration::ZERO));
    let (quick, given, answer) = probe(readings(Duration::ZERO, Duration::ZERO));
    drop(answer);
    let forwarding = Forwarding::start(vec![hanging, quick]).unwrap();
    forwarding.publish(&progress(1.0), false);
    hangs.recv().unwrap();
    given.recv().unwrap();
    forwarding.publish(&progress(2.0), true);
    given.recv().unwrap();
    // It returns although the first target still hangs.
    forwarding.close(Duration::from_millis(600));
    let counts = forwarding.describe();
    assert_eq!((counts[0].sent, counts[1].sent), (0, 2));
    assert_eq!((counts[0].name.as_str(), counts[1].name.as_str()), ("probe", "probe#2"));
    drop(never);
}

#[test]
fn last_reading_is_sent_before_the_period_ends() {
    let hour = Duration::from_hours(1);
    let (target, given, answer) = probe(readings(hour, Duration::ZERO));
    drop(answer);
    let forwarding = Forwarding::start(vec![target]).unwrap();
    forwarding.publish(&progress(1.0), false);
    given.recv().unwrap();
    forwarding.publish(&progress(2.0), false);
    forwarding.publish(&progress(3.0), true);
    assert!(matches!(given.recv().unwrap(), Item::Reading { is_last: true, .. }));
    forwarding.close(Duration::from_mins(1));
    // What only waited for its time is not lost.
    assert_eq!(forwarding.describe()[0].dropped, 0);
}

#[test]
fn events_wait_in_order_and_the_oldest_are_dropped() {
    let inbox = Inbox::new(Takes::Events(EventSet::all()));
    let reading = Arc::new(progress(1.0));
    let event = |kind| Item::Event(Arc::new(Event { kind, progress: Arc::clone(&reading) }));
    inbox.put(event(Kind::Acceptable));
    assert!(inbox.next().is_some());
    for _ in 0..20 {
        inbox.put(event(Kind::Stalled));
    }
    inbox.put(event(Kind::Finished));
    inbox.close();
    let kinds: Vec<_> = std::iter::from_fn(|| match inbox.next()? {
        Item::Event(event) => Some(event.kind),
        Item::Reading { .. } => None,
    })
    .collect();
    assert_eq!((kinds.len(), kinds.last()), (16, Some(&Kind::Finished)));
    assert_eq!(inbox.counts().dropped, 5);
}

fn kinds(watcher: &mut Watcher, reading: &Progress) -> Vec<&'static str> {
    let events = watcher.observe(&Arc::new(reading.clone()), false);
    events.iter().map(|event| event.kind.name()).collect()
}

#[test]
fn each_target_is_one_event_unless_reached_before() {
    let mut reading = progress(1.0);
    let mut watcher = Watcher::default();
    assert!(kinds(&mut watcher, &reading).is_empty());
    reading.reached.acceptable_at = Some(reading.now);
    assert_eq!(kinds(&mut watcher, &reading), ["acceptable"]);
    assert!(kinds(&mut watcher, &reading).is_empty());
    reading.reached.objective_at = Some(reading.started_at - 10.0);
    assert!(kinds(&mut watcher, &reading).is_empty(), "an earlier process reached it");
    reading.state = State::Failed;
    assert_eq!(kinds(&mut watcher, &reading), ["failed"]);
    assert!(kinds(&mut watcher, &reading).is_empty());
}

#[test]
fn stall_is_an_event_again_once_it_was_over_for_long() {
    let mut watcher = Watcher::default();
    let mut at = |seconds, activity| {
        let mut reading = progress(seconds);
        reading.signals.activity = activity;
        reading.now = seconds;
        kinds(&mut watcher, &reading)
    };
    assert_eq!(at(100.0, Activity::Stalled), ["stalled"]);
    assert!(at(101.0, Activity::Stalled).is_empty());
    assert!(at(102.0, Activity::Training).is_empty());
    assert!(at(103.0, Activity::Stalled).is_empty(), "it is too soon");
    assert!(at(200.0, Activity::Training).is_empty());
    assert_eq!(at(201.0, Activity::Stalled), ["stalled"]);
}

#[test]
fn loss_that_stays_nonfinite_is_diverging() {
    let mut watcher = Watcher::default();
    let mut at = |seconds, health, state| {
        let mut reading = progress(seconds);
        reading.signals.health = health;
        (reading.now, reading.state) = (seconds, state);
        kinds(&mut watcher, &reading)
    };
    assert!(at(1.0, Health::Nonfinite, State::Running).is_empty());
    assert!(at(2.0, Health::Fine, State::Running).is_empty());
    assert!(at(7.0, Health::Nonfinite, State::Running).is_empty());
    assert_eq!(at(12.0, Health::Nonfinite, State::Running), ["diverging"]);
    assert!(at(13.0, Health::Fine, State::Running).is_empty());
    assert_eq!(at(90.0, Health::Diverging, State::Running), ["diverging"]);
    let mut watcher = Watcher::default();
    let mut reading = progress(1.0);
    (reading.signals.health, reading.state) = (Health::Nonfinite, State::Failed);
    assert_eq!(kinds(&mut watcher, &reading), ["diverging", "failed"]);
}

#[test]
fn event_sets_are_read_and_shown() {
    let set: EventSet = "stalled, acceptable".parse().unwrap();
    assert_eq!(set.to_string(), "acceptable,stalled");
    assert!(set.contains(Kind::Stalled) && !set.contains(Kind::Failed));
    assert_eq!(EventSet::all().to_string().split(',').count(), 6);
    assert_eq!(
        "done".parse::<EventSet>().unwrap_err(),
        "invalid event \"done\": expected any of acceptable, objective, stalled, diverging, \
         finished, failed"
    );
}

#[test]
fn event_is_one_bounded_line_of_json() {
    let mut reading = progress(1.0);
    (reading.step, reading.eval.value) = (Some(12), Some(0.5));
    let json = |reading: &Progress| {
        Event { kind: Kind::Objective, progress: Arc::new(reading.clone()) }.json()
    };
    let text = json(&reading);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&value["event"], &value["job"]), (&"objective".into(), &"vae".into()));
    assert_eq!(value["text"], "vae has reached its objective at step 12, loss 0.5");
    assert_eq!(value["progress"]["step"], 12);
    reading.job = "long\n".repeat(100_000);
    let text = json(&reading);
    assert!(text.len() < 4096 && !text.contains('\n'), "{}", text.len());
    assert!(serde_json::from_str::<serde_json::Value>(&text).unwrap()["progress"].is_null());
}
