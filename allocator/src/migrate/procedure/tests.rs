use proptest::prelude::*;

use super::*;

/// The two containers, and what each step does to them.
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

/// What comes of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Luck {
    Done,
    /// It failed, and has changed nothing.
    Failed,
    /// It failed, but has done it all the same.
    Late,
    /// The allocator was killed just before it, and another one goes on by the journal.
    KilledBefore,
    /// The same just after it.
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
        assert!(!both, "two run from one checkpoint");
        let none = self.source == Source::Gone && self.target != Target::Runs;
        assert!(!none, "the job is lost");
    }
}

/// Runs a move by these outcomes, and well from then on.
fn run(luck: impl IntoIterator<Item = Luck>) -> (World, Course) {
    let mut world = World::new();
    let mut procedure = Procedure::default();
    let mut journal = procedure.clone();
    let mut luck = luck.into_iter().chain(std::iter::repeat(Luck::Done));
    loop {
        let step = procedure.step();
        let luck = luck.next().unwrap();
        if luck == Luck::NotBegun {
            match procedure.refused("the disk is full".to_owned()) {
                Some(_) => continue,
                // It is done with the record of the step before.
                None => world.act(step),
            }
        } else {
            journal = procedure.clone();
            if !matches!(luck, Luck::Failed | Luck::KilledBefore) {
                world.act(step);
            }
        }
        world.check();
        let outcome = match luck {
            Luck::Done | Luck::NotBegun => Ok(()),
            Luck::Failed | Luck::Late => Err("no".to_owned()),
            Luck::KilledBefore | Luck::Killed => {
                procedure = journal.clone().abandoned("killed");
                continue;
            }
        };
        let course = procedure.came(outcome);
        if matches!(course, Course::Moved | Course::Stayed(_)) {
            return (world, course);
        }
    }
}

#[test]
fn where_all_goes_well_the_job_runs_on_the_target() {
    let (world, course) = run([]);
    assert_eq!(course, Course::Moved);
    assert_eq!(world, World { source: Source::Gone, target: Target::Runs });
}

#[test]
fn whatever_fails_before_the_proof_the_job_goes_on_at_the_source() {
    for failing in 0..5 {
        for luck in [Luck::Failed, Luck::Late, Luck::KilledBefore, Luck::Killed, Luck::NotBegun] {
            let (world, course) = run([vec![Luck::Done; failing], vec![luck]].concat());
            assert!(matches!(course, Course::Stayed(_)), "step {failing}, {luck:?}: {course:?}");
            assert_eq!(world, World { source: Source::Runs, target: Target::Missing });
        }
    }
}

#[test]
fn after_the_proof_the_move_is_completed() {
    for failing in 5..7 {
        for luck in [Luck::Failed, Luck::Late, Luck::KilledBefore, Luck::Killed] {
            let (_, course) = run([vec![Luck::Done; failing], vec![luck]].concat());
            assert_eq!(course, Course::Moved, "step {failing}, {luck:?}");
        }
    }
}

#[test]
fn the_reason_of_a_failure_is_kept_over_a_crash() {
    let mut procedure = Procedure::default();
    procedure.came(Err("no room".to_owned()));
    let text = serde_json::to_string(&procedure).unwrap();
    assert_eq!(text, r#"{"step":"discard","failed":"no room"}"#);
    let mut found = serde_json::from_str::<Procedure>(&text).unwrap().abandoned("killed");
    found.came(Ok(()));
    assert_eq!(found.came(Ok(())), Course::Stayed("no room".to_owned()));
}

#[test]
fn what_may_have_been_done_is_not_taken_back_for_want_of_a_record() {
    let (_, course) = run([vec![Luck::Done; 5], vec![Luck::Late, Luck::NotBegun]].concat());
    assert_eq!(course, Course::Moved);
    let mut found = Procedure::default();
    for _ in 0..5 {
        found.came(Ok(()));
    }
    assert_eq!(found.step(), Step::Retire);
    assert_eq!(found.abandoned("killed").refused("the disk is full".to_owned()), None);
}

#[test]
fn a_proof_that_holds_no_more_leads_back_also_after_a_crash() {
    let mut procedure = Procedure::default();
    for _ in 0..5 {
        procedure.came(Ok(()));
    }
    let mut procedure = procedure.abandoned("killed");
    assert_eq!(procedure.step(), Step::Retire);
    assert_eq!(procedure.refuted("gone".to_owned()), Course::GoOn(Step::Discard));
    procedure.came(Ok(()));
    assert_eq!(procedure.came(Ok(())), Course::Stayed("gone".to_owned()));
}

#[test]
fn a_steps_name_is_what_stands_in_the_journal() {
    for step in Step::ALL {
        assert_eq!(serde_json::to_value(step).unwrap(), step.name());
    }
}

fn luck() -> impl Strategy<Value = Luck> {
    prop_oneof![
        4 => Just(Luck::Done),
        1 => Just(Luck::Failed),
        1 => Just(Luck::Late),
        1 => Just(Luck::KilledBefore),
        1 => Just(Luck::Killed),
        1 => Just(Luck::NotBegun),
    ]
}

proptest! {
    #[test]
    fn never_do_two_run_and_never_none_is_there(luck in proptest::collection::vec(luck(), 0..40)) {
        let (world, course) = run(luck);
        let expected = match course {
            Course::Moved => World { source: Source::Gone, target: Target::Runs },
            Course::GoOn(_) | Course::Again(_) | Course::Stayed(_) => {
                World { source: Source::Runs, target: Target::Missing }
            }
        };
        prop_assert_eq!(world, expected);
    }
}
