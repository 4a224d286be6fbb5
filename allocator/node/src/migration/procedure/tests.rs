use proptest::prelude::*;

use super::*;

/// The two containers.
#[derive(Clone, Copy, Debug, PartialEq)]
struct World {
    source: Source,
    target: Target,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Source {
    Runs,
    Frozen,
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Target {
    Missing,
    Made,
    Runs,
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
enum StepOutcome {
    Done,
    /// It failed and has changed nothing.
    Failed,
    /// It reported a failure, but was done.
    Late,
    /// The allocator was killed just before it, and another one continues from the journal.
    KilledBefore,
    /// The allocator was killed just after it.
    Killed,
    /// The journal could not be written.
    NotBegun,
}

impl World {
    fn new() -> Self {
        Self { source: Source::Runs, target: Target::Missing }
    }

    fn act(&mut self, step: Step) {
        match step {
            Step::Create => self.target = Target::Made,
            Step::Pause => self.source = Source::Frozen,
            Step::Start => self.target = Target::Runs,
            Step::Retire => self.source = Source::Gone,
            Step::Discard => self.target = Target::Missing,
            Step::Resume => {
                if self.source == Source::Frozen {
                    self.source = Source::Runs;
                }
            }
            Step::Save | Step::Prove | Step::Rename => {}
        }
    }

    fn check(self) {
        let both = self.source == Source::Runs && self.target == Target::Runs;
        assert!(!both, "both containers run");
        let none = self.source == Source::Gone && self.target != Target::Runs;
        assert!(!none, "the job is lost");
    }
}

/// Runs a move with these outcomes of its steps, and successful ones after them.
fn run(outcomes: impl IntoIterator<Item = StepOutcome>) -> (World, MigrationState) {
    let mut world = World::new();
    let mut procedure = Procedure::default();
    let mut journal = procedure.clone();
    let mut outcomes = outcomes.into_iter().chain(std::iter::repeat(StepOutcome::Done));
    loop {
        let step = procedure.step();
        let luck = outcomes.next().unwrap();
        if luck == StepOutcome::NotBegun {
            match procedure.refused("the disk is full".to_owned()) {
                Some(_) => continue,
                // It is done although only the step before is recorded.
                None => world.act(step),
            }
        } else {
            journal = procedure.clone();
            if !matches!(luck, StepOutcome::Failed | StepOutcome::KilledBefore) {
                world.act(step);
            }
        }
        world.check();
        let outcome = match luck {
            StepOutcome::Done | StepOutcome::NotBegun => Ok(()),
            StepOutcome::Failed | StepOutcome::Late => Err("no".to_owned()),
            StepOutcome::KilledBefore | StepOutcome::Killed => {
                procedure = journal.clone().abandoned("killed");
                continue;
            }
        };
        let state = procedure.finished(outcome);
        if matches!(state, MigrationState::Moved | MigrationState::Stayed(_)) {
            return (world, state);
        }
    }
}

#[test]
fn successful_move_ends_on_the_target() {
    let (world, state) = run([]);
    assert_eq!(state, MigrationState::Moved);
    assert_eq!(world, World { source: Source::Gone, target: Target::Runs });
}

#[test]
fn failure_before_the_proof_ends_at_the_source() {
    for failing in 0..5 {
        for luck in [
            StepOutcome::Failed,
            StepOutcome::Late,
            StepOutcome::KilledBefore,
            StepOutcome::Killed,
            StepOutcome::NotBegun,
        ] {
            let (world, state) = run([vec![StepOutcome::Done; failing], vec![luck]].concat());
            assert!(
                matches!(state, MigrationState::Stayed(_)),
                "step {failing}, {luck:?}: {state:?}"
            );
            assert_eq!(world, World { source: Source::Runs, target: Target::Missing });
        }
    }
}

#[test]
fn failure_after_the_proof_completes_the_move() {
    for failing in 5..7 {
        for luck in
            [StepOutcome::Failed, StepOutcome::Late, StepOutcome::KilledBefore, StepOutcome::Killed]
        {
            let (_, state) = run([vec![StepOutcome::Done; failing], vec![luck]].concat());
            assert_eq!(state, MigrationState::Moved, "step {failing}, {luck:?}");
        }
    }
}

#[test]
fn reason_of_a_failure_survives_a_crash() {
    let mut procedure = Procedure::default();
    procedure.finished(Err("no room".to_owned()));
    let text = serde_json::to_string(&procedure).unwrap();
    assert_eq!(text, r#"{"step":"discard","failed":"no room"}"#);
    let mut found = serde_json::from_str::<Procedure>(&text).unwrap().abandoned("killed");
    found.finished(Ok(()));
    assert_eq!(found.finished(Ok(())), MigrationState::Stayed("no room".to_owned()));
}

#[test]
fn step_that_may_be_done_is_not_undone_for_a_missing_record() {
    let (_, state) =
        run([vec![StepOutcome::Done; 5], vec![StepOutcome::Late, StepOutcome::NotBegun]].concat());
    assert_eq!(state, MigrationState::Moved);
    let mut found = Procedure::default();
    for _ in 0..5 {
        found.finished(Ok(()));
    }
    assert_eq!(found.step(), Step::Retire);
    assert_eq!(found.abandoned("killed").refused("the disk is full".to_owned()), None);
}

#[test]
fn void_proof_undoes_the_move_even_after_a_crash() {
    let mut procedure = Procedure::default();
    for _ in 0..5 {
        procedure.finished(Ok(()));
    }
    let mut procedure = procedure.abandoned("killed");
    assert_eq!(procedure.step(), Step::Retire);
    assert_eq!(procedure.refuted("gone".to_owned()), MigrationState::Continue(Step::Discard));
    procedure.finished(Ok(()));
    assert_eq!(procedure.finished(Ok(())), MigrationState::Stayed("gone".to_owned()));
}

#[test]
fn step_has_the_same_name_in_the_journal() {
    for step in Step::ALL {
        assert_eq!(serde_json::to_value(step).unwrap(), step.name());
    }
}

fn outcome() -> impl Strategy<Value = StepOutcome> {
    prop_oneof![
        4 => Just(StepOutcome::Done),
        1 => Just(StepOutcome::Failed),
        1 => Just(StepOutcome::Late),
        1 => Just(StepOutcome::KilledBefore),
        1 => Just(StepOutcome::Killed),
        1 => Just(StepOutcome::NotBegun),
    ]
}

proptest! {
    #[test]
    fn one_container_always_survives(outcomes in proptest::collection::vec(outcome(), 0..40)) {
        let (world, state) = run(outcomes);
        let expected = match state {
            MigrationState::Moved => World { source: Source::Gone, target: Target::Runs },
            MigrationState::Continue(_) | MigrationState::Retry(_) | MigrationState::Stayed(_) => {
                World { source: Source::Runs, target: Target::Missing }
            }
        };
        prop_assert_eq!(world, expected);
    }
}
