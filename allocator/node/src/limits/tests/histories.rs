//! Random histories of allocators, owners, an engine and a machine, with kills at every step. In the end
//! every container must have the limits that its owner set last. These are the invariants of
//! [`crate::limits::originals`].
//!
//! The variable `PACELINE_HISTORIES` sets how many histories there are.

mod owner;

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;
use crate::crash::simulated::kill_after;
use crate::limits::originals::{OriginalsError, Scope};
use owner::Owners;

/// How many histories there are, unless the variable is set.
const HISTORIES: u32 = 500;
/// The containers; the last one was created with a quota.
const CONTAINERS: [&str; 3] = ["free", "capped", "quota"];
/// The allocators, by their state folders.
const ALLOCATORS: [&str; 2] = ["root", "member"];

/// One step of a history.
#[derive(Clone, Debug)]
enum Step {
    /// An allocator starts, and first restores what an earlier run has left.
    Start(usize, Scope),
    /// An allocator writes a setting.
    Write(usize, usize, Setting),
    /// An allocator compares the limit in force with its last write.
    Sample(usize, usize),
    /// An allocator ends in order.
    End(usize),
    /// An allocator is killed.
    Kill(usize),
    /// `paceline restore` for an allocator's state folder.
    Restore(usize),
    /// The files of the state folder are removed or emptied; the running allocator notices.
    Damage(usize, bool),
    /// Others act.
    Others(Outside),
}

/// What others than the allocators do.
#[derive(Clone, Copy, Debug)]
enum Outside {
    /// The owner sets a limit by the engine: billionths of a CPU, or a weight.
    Update(usize, i64),
    Weigh(usize, i64),
    /// The owner sets another period by the engine, and nothing else.
    Period(usize, i64),
    /// The owner sets a limit past the engine.
    WriteFile(usize, u64),
    /// The owner sets a weight past the engine.
    WriteWeight(usize, u64),
    /// A container is started again.
    Restart(usize),
    /// The engine is restarted, and may call itself otherwise.
    RestartEngine(u8),
    /// The engine is without its data for a while, or has it again.
    Lose(bool),
    /// The engine fails after it has changed the kernel, or not any more.
    FailLate(bool),
    /// The machine is booted with other CPUs.
    Boot(u32),
}

/// A step of an allocator, and after how many of its own steps it is killed.
type Event = (Step, Option<u32>);

fn scope() -> impl Strategy<Value = Scope> {
    prop_oneof![Just(Scope::All), Just(Scope::Some)]
}

/// A setting of ours. It never equals one of an owner.
fn setting() -> impl Strategy<Value = Setting> {
    let weights = prop_oneof![Just(128), Just(512), Just(2048)].prop_map(Setting::Weight);
    let caps = (1..=10_u32).prop_map(|tenths| cap(f64::from(tenths) / 10.0));
    prop_oneof![3 => caps, 1 => weights]
}

fn outside() -> impl Strategy<Value = Outside> {
    let one = 0..CONTAINERS.len();
    let nano = prop_oneof![Just(370_000_000), Just(730_000_000), Just(940_000_000)];
    let weight = prop_oneof![Just(300), Just(700)];
    let us = prop_oneof![Just(44_000), Just(86_000)];
    let kernels = prop_oneof![Just(333), Just(888)];
    // With these, too, no limit of an owner is near a tenth of a CPU.
    let period = prop_oneof![Just(35_000), Just(260_000)];
    prop_oneof![
        3 => (one.clone(), nano).prop_map(|(one, nano)| Outside::Update(one, nano)),
        1 => (one.clone(), weight).prop_map(|(one, weight)| Outside::Weigh(one, weight)),
        1 => (one.clone(), period).prop_map(|(one, us)| Outside::Period(one, us)),
        1 => (one.clone(), us).prop_map(|(one, us)| Outside::WriteFile(one, us)),
        1 => (one.clone(), kernels).prop_map(|(one, to)| Outside::WriteWeight(one, to)),
        2 => one.prop_map(Outside::Restart),
        1 => (0..3_u8).prop_map(Outside::RestartEngine),
        1 => any::<bool>().prop_map(Outside::Lose),
        1 => any::<bool>().prop_map(Outside::FailLate),
        1 => prop_oneof![Just(1), Just(2), Just(4)].prop_map(Outside::Boot),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let (one, who) = (0..CONTAINERS.len(), 0..ALLOCATORS.len());
    prop_oneof![
        4 => (who.clone(), scope()).prop_map(|(who, scope)| Step::Start(who, scope)),
        8 => (who.clone(), one.clone(), setting()).prop_map(|(a, c, to)| Step::Write(a, c, to)),
        3 => (who.clone(), one).prop_map(|(who, one)| Step::Sample(who, one)),
        1 => who.clone().prop_map(Step::End),
        2 => who.clone().prop_map(Step::Kill),
        2 => who.clone().prop_map(Step::Restore),
        1 => (who, any::<bool>()).prop_map(|(who, all)| Step::Damage(who, all)),
        11 => outside().prop_map(Step::Others),
    ]
}

fn history() -> impl Strategy<Value = Vec<Event>> {
    let killed = prop_oneof![3 => Just(None), 1 => (0..12_u32).prop_map(Some)];
    prop::collection::vec((step(), killed), 1..30)
}

fn backend() -> impl Strategy<Value = ActuatorBackend> {
    prop_oneof![
        Just(ActuatorBackend::Auto),
        Just(ActuatorBackend::Cgroup),
        Just(ActuatorBackend::Engine)
    ]
}

fn groups() -> impl Strategy<Value = Groups> {
    prop_oneof![2 => Just(Groups::First), 1 => (0..2_usize).prop_map(Groups::Second)]
}

/// A machine with an engine, its owners, and allocators.
struct World {
    stub: Stub,
    owners: Owners,
    backend: ActuatorBackend,
    running: [Option<Running>; 2],
}

/// A running allocator, its scope, and the engine's id when it started.
type Running = (Actuator, Scope, String);

impl World {
    fn new(groups: Groups, backend: ActuatorBackend) -> Self {
        let stub = Stub::start_on(groups, &CONTAINERS);
        let mut owners = Owners::new(groups, &CONTAINERS);
        owners.update(&stub, "capped", &json!({"NanoCpus": 610_000_000}));
        {
            let mut state = stub.state.lock().unwrap();
            let host = state.hosts.get_mut("quota").unwrap();
            (host["CpuQuota"], host["CpuPeriod"]) = (json!(29_000), json!(50_000));
        }
        owners.created(&stub, "quota");
        Self { stub, owners, backend, running: [None, None] }
    }

    /// The running allocator of this number.
    fn get(&self, who: usize) -> Option<&Actuator> {
        self.running[who].as_ref().map(|(actuator, ..)| actuator)
    }

    async fn step(&mut self, (step, killed): Event) {
        let ended = match step {
            Step::Start(who, scope) => {
                if self.running[who].is_none()
                    && let Some(actuator) = self.open(who, scope)
                {
                    let actuator = actuator.with_backend(self.backend, OnDrift::Reassert);
                    let begun = kill_after(killed, restore_all(&actuator)).await;
                    let engine = self.stub.state.lock().unwrap().id.clone();
                    self.running[who] = begun.map(|_| (actuator, scope, engine));
                }
                return;
            }
            Step::Write(who, one, to) => {
                let Some(actuator) = self.get(who) else { return };
                // A write may be refused, as after a lie of the engine, or beside another allocator.
                (who, kill_after(killed, actuator.set(CONTAINERS[one], to)).await.is_some())
            }
            Step::Sample(who, one) => {
                let Some(actuator) = self.get(who) else { return };
                let sampled = kill_after(killed, Box::pin(sample(actuator, CONTAINERS[one]))).await;
                (who, sampled.is_some())
            }
            Step::End(who) => {
                if let Some(actuator) = self.get(who) {
                    kill_after(killed, restore_all(actuator)).await;
                }
                (who, false)
            }
            Step::Kill(who) => (who, false),
            Step::Restore(who) => {
                if self.running[who].is_none()
                    && let Some(actuator) = self.open(who, Scope::Recorded)
                {
                    kill_after(killed, restore_all(&actuator)).await;
                }
                return;
            }
            Step::Damage(who, all) => {
                if let Some(actuator) = self.get(who) {
                    damage(actuator.originals.folder(), all);
                    actuator.mend_files();
                }
                return;
            }
            Step::Others(outside) => return self.outside(outside),
        };
        let (who, goes_on) = ended;
        if !goes_on {
            self.running[who] = None;
        }
    }

    /// What others do.
    fn outside(&mut self, outside: Outside) {
        let (stub, owners) = (&self.stub, &mut self.owners);
        match outside {
            Outside::Update(one, nano) if CONTAINERS[one] == "quota" => {
                owners.update(stub, CONTAINERS[one], &json!({"CpuQuota": nano / 10_000}));
            }
            Outside::Update(one, nano) => {
                owners.update(stub, CONTAINERS[one], &json!({"NanoCpus": nano}));
            }
            Outside::Weigh(one, weight) => {
                owners.update(stub, CONTAINERS[one], &json!({"CpuShares": weight}));
            }
            Outside::Period(one, us) => {
                owners.update(stub, CONTAINERS[one], &json!({"CpuPeriod": us}));
            }
            Outside::WriteFile(one, us) => owners.write_file(stub, CONTAINERS[one], us),
            Outside::WriteWeight(one, to) => owners.write_weight(stub, CONTAINERS[one], to),
            Outside::Restart(one) => owners.restart(stub, CONTAINERS[one]),
            Outside::RestartEngine(number) => stub.restart_engine(&format!("engine{number}")),
            Outside::Lose(lost) => stub.state.lock().unwrap().lost = lost,
            Outside::FailLate(fails) => {
                let behavior = if fails { Behavior::FailsLate } else { Behavior::Honest };
                stub.state.lock().unwrap().behavior = behavior;
            }
            // What an engine keeps in place of "not set" is a number of CPUs.
            Outside::Boot(_) if self.backend == ActuatorBackend::Engine => self.boot(2),
            Outside::Boot(cpus) => self.boot(cpus),
        }
    }

    fn boot(&mut self, cpus: u32) {
        self.running = [None, None];
        self.stub.boot(cpus);
        self.owners.booted();
    }

    /// Opens an allocator. It is refused exactly if another one works on the same containers.
    fn open(&self, who: usize, scope: Scope) -> Option<Actuator> {
        let engine = self.stub.state.lock().unwrap().id.clone();
        // An engine with another id counts as another one; there, containers have locks of their own.
        let other = self.running[1 - who].as_ref().filter(|(.., on)| *on == engine);
        let other = other.map(|(_, scope, _)| *scope);
        let alone = scope == Scope::All || other == Some(Scope::All);
        let refused = other.is_some() && scope != Scope::Recorded && alone;
        match self.stub.allocator(ALLOCATORS[who], scope) {
            Ok(actuator) => {
                assert!(!refused, "{scope:?} beside {other:?}");
                Some(actuator)
            }
            Err(OriginalsError::Held { .. }) => {
                assert!(refused, "{scope:?} beside {other:?}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Everything works again, and each state folder is restored. Then the owners have what they set.
    async fn end(mut self) {
        self.running = [None, None];
        {
            let mut state = self.stub.state.lock().unwrap();
            (state.lost, state.behavior) = (false, Behavior::Honest);
        }
        for who in [0, 1] {
            let actuator = self.open(who, Scope::Recorded).unwrap();
            assert_eq!(restore_all(&actuator).await, Vec::<String>::new());
            assert_eq!(actuator.pending(), Vec::<String>::new());
            assert_eq!(actuator.leftovers(), []);
        }
        self.owners.check(&self.stub, self.backend);
        self.owners.apply_again(&self.stub);
        self.owners.check(&self.stub, self.backend);
        assert_eq!(self.stub.locks(), Vec::<String>::new());
    }
}

/// Removes a folder, or empties its files.
fn damage(folder: &Path, all: bool) {
    if all {
        fs::remove_dir_all(folder).unwrap();
        return;
    }
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if !path.ends_with("lock") {
            fs::write(path, "").unwrap();
        }
    }
}

/// Restores every container with a record; returns the errors.
async fn restore_all(actuator: &Actuator) -> Vec<String> {
    let mut errors: Vec<String> =
        actuator.adopt_leftovers().await.iter().map(ToString::to_string).collect();
    for id in actuator.pending() {
        errors.extend(actuator.restore(&id).await.err().map(|error| error.to_string()));
    }
    errors
}

/// A sample that finds a drift answers it.
async fn sample(actuator: &Actuator, id: &str) {
    if let Some(drift) = actuator.drifted(id).await {
        // An engine that lies or is without its data may refuse.
        drop(actuator.answer(&drift).await);
    }
}

/// Runs one history to its end.
fn run(groups: Groups, backend: ActuatorBackend, events: Vec<Event>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut world = World::new(groups, backend);
        for event in events {
            Box::pin(world.step(event)).await;
        }
        world.end().await;
    });
}

/// Runs the steps without kills, for each means.
fn run_all(steps: &[Step]) {
    for groups in [Groups::First, Groups::Second(0), Groups::Second(1)] {
        for backend in [ActuatorBackend::Auto, ActuatorBackend::Engine] {
            run(groups, backend, steps.iter().cloned().map(|step| (step, None)).collect());
        }
    }
}

#[test]
fn write_into_a_later_life_of_the_group_is_known_as_ours() {
    // The group that was seen before had the same values, so that the engine is not asked again.
    run_all(&[
        Step::Start(1, Scope::All),
        Step::Write(1, 0, cap(1.0)),
        Step::Others(Outside::Restart(0)),
        Step::Write(1, 0, cap(0.1)),
    ]);
}

#[test]
fn owner_may_write_the_original_again_after_a_request() {
    run_all(&[
        Step::Others(Outside::WriteFile(1, 44_000)),
        Step::Start(0, Scope::All),
        Step::Write(0, 1, cap(0.1)),
        Step::Others(Outside::Update(1, 370_000_000)),
        Step::Others(Outside::WriteFile(1, 44_000)),
    ]);
}

#[test]
fn restore_without_the_engine_knows_a_quota_of_ours_in_another_period() {
    run_all(&[
        Step::Start(0, Scope::All),
        Step::Write(0, 0, cap(0.1)),
        Step::Others(Outside::Period(0, 35_000)),
        Step::Kill(0),
        Step::Others(Outside::Lose(true)),
        Step::Restore(0),
    ]);
}

#[test]
fn record_that_ends_in_another_engines_folder_leaves_no_lock() {
    run_all(&[
        Step::Start(0, Scope::All),
        Step::Write(0, 0, cap(0.1)),
        Step::Others(Outside::Lose(true)),
        Step::Others(Outside::RestartEngine(0)),
        Step::Others(Outside::Boot(1)),
        Step::Start(0, Scope::All),
    ]);
}

#[test]
fn restore_without_the_engine_knows_a_raise_of_ours_in_another_period() {
    run(
        Groups::First,
        ActuatorBackend::Auto,
        vec![
            (Step::Start(0, Scope::All), None),
            (Step::Write(0, 2, cap(1.0)), Some(2)),
            (Step::Others(Outside::Period(2, 35_000)), None),
            (Step::Others(Outside::Lose(true)), None),
            (Step::Restore(0), None),
        ],
    );
}

#[test]
fn owner_may_return_to_an_earlier_value_after_a_killed_write() {
    run(
        Groups::First,
        ActuatorBackend::Auto,
        vec![
            (Step::Start(0, Scope::All), None),
            (Step::Others(Outside::Update(2, 730_000_000)), None),
            (Step::Write(0, 2, cap(0.1)), None),
            (Step::Others(Outside::Update(2, 940_000_000)), None),
            (Step::Write(0, 2, cap(0.1)), Some(0)),
            (Step::Others(Outside::Update(2, 730_000_000)), None),
        ],
    );
}

#[test]
fn owner_may_write_the_same_quota_again_in_another_period() {
    run(
        Groups::First,
        ActuatorBackend::Auto,
        vec![
            (Step::Others(Outside::WriteFile(2, 44_000)), None),
            (Step::Start(0, Scope::All), None),
            (Step::Write(0, 2, Setting::Weight(128)), None),
            (Step::Others(Outside::Period(2, 35_000)), None),
            (Step::Others(Outside::WriteFile(2, 44_000)), None),
        ],
    );
}

#[test]
fn request_that_failed_late_is_asked_for_again_by_a_restore() {
    // Systemd keeps it, although the engine does not.
    for setting in [Setting::Weight(128), cap(0.1)] {
        run_all(&[
            Step::Start(0, Scope::All),
            Step::Others(Outside::FailLate(true)),
            Step::Write(0, 0, setting),
        ]);
    }
}

#[test]
fn every_history_ends_with_the_owners_last_word() {
    let given = std::env::var("PACELINE_HISTORIES").ok();
    let cases = given.map_or(HISTORIES, |given| given.parse().expect("a number of histories"));
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(
        &(groups(), backend(), history()),
        |(groups, backend, events)| {
            run(groups, backend, events);
            Ok(())
        },
    );
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
