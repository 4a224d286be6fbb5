//! What a lie wins: the CPU of a job that lies to each policy, beside an honest job of the same kind.
//!
//! SECURITY.md has the same table.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

use std::fmt::Write;

use paceline_policy::engine::{Reading, Report, Steps};
use paceline_policy::frame::Reached;
use paceline_policy::limiter::{LimiterSettings, Setting};
use paceline_policy::policies::{self, AnyPolicy, Entry};
use paceline_policy::unit::counter;
use paceline_policy::{Effect, Engine, Event, JobId, JobSpec, Moment, Params, Share, Variant};
use paceline_wire::{Direction, Targets};

const CPUS: f64 = 4.0;
/// The length of a run, and from when on the CPU counts: later, an honest job would end.
const SECONDS: u32 = 600;
const FROM: u32 = 60;
/// The work of a batch, in CPU seconds.
const BATCH: f64 = 1.0;
/// The work after which the loss has fallen to its 2.7th part, in CPU seconds.
const SCALE: f64 = 200.0;

/// What a job reports.
#[derive(Clone, Copy, Debug)]
enum Lie {
    /// The truth.
    None,
    /// Its loss falls and falls, as fast as at its start.
    Loss,
    /// Its batches take ten times as long.
    Batches,
    /// One of its batches took a year.
    Impossible,
    /// Nothing.
    Silence,
}

const LIES: [(&str, Lie); 5] = [
    ("the truth", Lie::None),
    ("a loss that always falls", Lie::Loss),
    ("batches of ten times their length", Lie::Batches),
    ("a batch of a year", Lie::Impossible),
    ("nothing", Lie::Silence),
];

#[derive(Debug)]
struct Job {
    id: JobId,
    lie: Lie,
    cap: f64,
    /// CPU seconds used, and those after the beginning of the measurement.
    used: f64,
    counted: f64,
    losses: (u64, f64),
    batches: (u64, f64),
}

impl Job {
    fn new(name: &str, lie: Lie) -> Self {
        Self {
            id: JobId::new(name).unwrap(),
            lie,
            cap: 1.0,
            used: 0.0,
            counted: 0.0,
            losses: (0, 0.0),
            batches: (0, 0.0),
        }
    }

    fn spec(&self) -> JobSpec {
        JobSpec {
            id: self.id.clone(),
            node: None,
            fresh: true,
            in_force: Share::ALL,
            min: None,
            max: None,
            weight: 1.0,
            own_weight: 1024,
            age: Some(0.0),
            max_slowdown: None,
            may_terminate: false,
            work: None,
            direction: None,
            targets: Targets {
                acceptable: Some(0.5),
                objective: Some(0.1),
                batch_latency: Some(0.6),
            },
        }
    }

    /// Trains for a second on this share of the node.
    fn train(&mut self, share: f64, counts: bool) {
        let cpu = share * CPUS;
        self.used += cpu;
        self.counted += if counts { cpu } else { 0.0 };
        while counter(self.batches.0 + 1) * BATCH <= self.used {
            let work = counter(self.batches.0) * BATCH;
            let loss = match self.lie {
                Lie::Loss => 1000.0 - work / SCALE,
                Lie::None | Lie::Batches | Lie::Impossible | Lie::Silence => {
                    4.0 * (-work / SCALE).exp()
                }
            };
            let took = match self.lie {
                Lie::Batches => 10.0 * BATCH / cpu,
                Lie::Impossible if self.batches.0 == 10 => 365.0 * 86_400.0,
                Lie::None | Lie::Loss | Lie::Impossible | Lie::Silence => BATCH / cpu,
            };
            self.losses = (self.losses.0 + 1, self.losses.1 + loss);
            self.batches = (self.batches.0 + 1, self.batches.1 + took);
        }
    }

    fn report(&self) -> Option<Report> {
        (!matches!(self.lie, Lie::Silence)).then(|| Report {
            instance: "one".into(),
            direction: Direction::Minimize,
            losses: self.losses,
            largest: Some(if matches!(self.lie, Lie::Loss) { 1000.0 } else { 4.0 }),
            batches: self.batches,
            done: None,
            steps: Steps { taken: Some(self.batches.0), ..Steps::default() },
            age: 0.0,
            targets: Targets::default(),
            reached: Reached::default(),
        })
    }
}

/// The share of the node that the first of two jobs gets, if it lies so.
fn share(entry: &Entry, variant: Variant, lie: Lie) -> f64 {
    let policy = policies::build(entry.name, variant, &Params::default()).unwrap();
    let AnyPolicy::Jobs(policy) = policy else { panic!("{} is a policy of jobs", entry.name) };
    let settings = LimiterSettings { enforcement: entry.enforcement, ..LimiterSettings::default() };
    let engine = Engine::new("here", CPUS, None, policy);
    let mut engine = engine.with_limiter(settings).unwrap();
    let mut jobs = [Job::new("liar", lie), Job::new("other", Lie::None)];
    let mut next = Moment::default();
    for second in 0..SECONDS {
        let now = Moment::from_seconds(f64::from(second));
        if second == 0 {
            for job in &jobs {
                assert_eq!(engine.step(now, Event::Appeared(job.spec())), []);
            }
        }
        for job in &jobs {
            let (cpu_seconds, throttled_seconds) = (job.used, None);
            let reading = Reading { cpu_seconds, throttled_seconds, memory: None };
            assert_eq!(engine.step(now, Event::Used(job.id.clone(), reading)), []);
            if let Some(report) = job.report() {
                assert_eq!(engine.step(now, Event::Reported(job.id.clone(), report)), []);
            }
        }
        let due = now >= next;
        for effect in engine.step(now, if due { Event::Decide } else { Event::Tick }) {
            match effect {
                Effect::WakeAt(moment) => next = moment,
                Effect::Set(changes) => {
                    for change in changes {
                        let Setting::Cap(cap) = change.to else { panic!("{change:?}") };
                        let job = jobs.iter_mut().find(|job| job.id == change.job).unwrap();
                        job.cap = cap.get();
                        assert_eq!(engine.step(now, Event::Applied(change.job, change.to)), []);
                    }
                }
                Effect::Decided(_) | Effect::End(_) => {}
            }
        }
        // Both want the whole node: the kernel shares it equally, up to the caps.
        let caps = jobs.each_ref().map(|job| job.cap);
        for (job, other) in jobs.iter_mut().zip(caps.into_iter().rev()) {
            let share = job.cap.min((1.0 - other).max(0.5));
            job.train(share, second >= FROM);
        }
    }
    jobs[0].counted / (f64::from(SECONDS - FROM) * CPUS)
}

/// The table, in Markdown.
fn table() -> String {
    let mut table = "| policy |".to_owned();
    for (said, _) in LIES {
        write!(table, " {said} |").unwrap();
    }
    table += "\n|---|";
    table += &"---|".repeat(LIES.len());
    let jobs = |entry: &&Entry| {
        let built = policies::build(entry.name, Variant::Resolved, &Params::default()).unwrap();
        matches!(built, AnyPolicy::Jobs(_)) && !entry.is_yardstick()
    };
    for entry in policies::ALL.iter().filter(jobs) {
        let published = entry.is_from_paper().then_some(Variant::Published);
        for variant in [Variant::Resolved].into_iter().chain(published) {
            let name = if variant == Variant::Published { " `published`" } else { "" };
            write!(table, "\n| `{}`{name} |", entry.name).unwrap();
            for (_, lie) in LIES {
                write!(table, " {:.0} % |", 100.0 * share(entry, variant, lie)).unwrap();
            }
        }
    }
    table
}

#[test]
fn table_of_lies_in_the_documents_is_measured() {
    let documents = concat!(env!("CARGO_MANIFEST_DIR"), "/../../SECURITY.md");
    let documents = std::fs::read_to_string(documents).unwrap();
    let table = table();
    assert!(documents.contains(&table), "SECURITY.md must contain:\n{table}");
}

#[test]
fn no_lie_leaves_the_other_job_below_its_least_share() {
    for entry in policies::ALL {
        let built = policies::build(entry.name, Variant::Resolved, &Params::default()).unwrap();
        if !matches!(built, AnyPolicy::Jobs(_)) || entry.is_yardstick() {
            continue;
        }
        for (said, lie) in LIES {
            let share = share(entry, Variant::Resolved, lie);
            assert!(share <= 0.96, "{}: {said} wins {share}", entry.name);
        }
    }
}

#[test]
fn impossible_batch_wins_no_more_than_none() {
    for entry in policies::ALL.iter().filter(|entry| ["dqoes", "paceline"].contains(&entry.name)) {
        for variant in [Variant::Resolved, Variant::Published] {
            let [silent, lying] =
                [Lie::Silence, Lie::Impossible].map(|lie| share(entry, variant, lie));
            assert!(lying <= silent + 0.01, "{} {variant:?}: {silent} {lying}", entry.name);
        }
    }
}
