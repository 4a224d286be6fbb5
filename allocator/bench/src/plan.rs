//! The order of a bench's runs.

use serde::{Deserialize, Serialize};

use super::schedule::Schedule;

/// A planned run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Planned {
    /// Counts the runs from 1; the warm-up is 0.
    pub(crate) number: u32,
    /// The arm's name.
    pub(crate) arm: String,
    /// Counts from 1; the warm-up is 0.
    pub(crate) repeat: u32,
}

impl Planned {
    /// The name of its folder.
    pub(crate) fn folder(&self) -> String {
        format!("{:03}-{}", self.number, self.arm)
    }

    /// Whether both are the same repeat of the same arm.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        (&self.arm, self.repeat) == (&other.arm, other.repeat)
    }
}

/// All runs of `schedule`. Every second repeat is in reverse order (A B, B A, A B, …), so that slow
/// changes of the machine affect all arms alike. With more repeats, the first runs stay the same.
pub(crate) fn order(schedule: &Schedule) -> Vec<Planned> {
    let arms = || schedule.arms.iter().map(|arm| arm.name.clone());
    let warm_up = arms().take(usize::from(schedule.warm_up));
    let warm_up = warm_up.map(|arm| Planned { number: 0, arm, repeat: 0 });
    let runs = (1..=schedule.repeats).flat_map(|repeat| {
        let in_order: Vec<String> =
            if repeat % 2 == 1 { arms().collect() } else { arms().rev().collect() };
        in_order.into_iter().map(move |arm| (arm, repeat))
    });
    let runs = (1_u32..).zip(runs).map(|(number, (arm, repeat))| Planned { number, arm, repeat });
    warm_up.chain(runs).collect()
}

/// The runs of `asked` that are not among those already `begun`, numbered after these.
pub(crate) fn added(begun: &[Planned], asked: &[Planned]) -> Vec<Planned> {
    let last = begun.iter().map(|run| run.number).max().unwrap_or(0);
    let is_new = |run: &&Planned| !begun.iter().any(|other| other.is_same_as(run));
    let (warm_up, runs): (Vec<&Planned>, Vec<&Planned>) =
        asked.iter().filter(is_new).partition(|run| run.repeat == 0);
    let runs = (last + 1..).zip(runs).map(|(number, run)| Planned { number, ..run.clone() });
    warm_up.into_iter().cloned().chain(runs).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn folders(head: &str) -> Vec<String> {
        runs(head).iter().map(Planned::folder).collect()
    }

    fn runs(head: &str) -> Vec<Planned> {
        let text = format!(
            "name = 's'\npolicies = ['none', 'flowcon']\n{head}\n\
             [[job]]\nname = 'j'\nimage = 'i'\narrive = 0\n"
        );
        let schedule = Schedule::parse(Path::new("s.toml"), &text).unwrap();
        order(&schedule)
    }

    #[test]
    fn every_second_repeat_is_reversed_after_the_warm_up() {
        assert_eq!(
            folders("repeats = 3"),
            [
                "000-none",
                "001-none",
                "002-flowcon",
                "003-flowcon",
                "004-none",
                "005-none",
                "006-flowcon"
            ]
        );
    }

    #[test]
    fn one_repeat_is_each_arm_once() {
        assert_eq!(folders(""), ["001-none", "002-flowcon"]);
        assert_eq!(folders("warm-up = true").first().map(String::as_str), Some("000-none"));
    }

    #[test]
    fn more_repeats_begin_with_the_same_runs() {
        let (two, five) = (folders("repeats = 2"), folders("repeats = 5"));
        assert_eq!(five.get(..two.len()), Some(two.as_slice()));
        let (two, five) = (runs("repeats = 2"), runs("repeats = 5"));
        assert_eq!(added(&two, &five), five[two.len()..]);
    }

    #[test]
    fn runs_of_a_new_arm_come_last() {
        let more = "repeats = 2\n[[arm]]\npolicy = 'tradl'";
        let new: Vec<String> =
            added(&runs("repeats = 2"), &runs(more)).iter().map(Planned::folder).collect();
        assert_eq!(new, ["005-tradl", "006-tradl"]);
    }
}
