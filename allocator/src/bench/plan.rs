//! The order of a bench's runs.

use serde::{Deserialize, Serialize};

use super::schedule::Schedule;

/// A run that is to be made.
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
    /// What its folder is called.
    pub(crate) fn folder(&self) -> String {
        format!("{:03}-{}", self.number, self.arm)
    }
}

/// All runs of `schedule`: every second repeat goes the other way round (A B, B A, A B, …), so that
/// what drifts with time on the machine falls on all arms alike. Of more repeats the first are the
/// same runs.
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn folders(head: &str) -> Vec<String> {
        let text = format!(
            "name = 's'\npolicies = ['none', 'flowcon']\n{head}\n\
             [[job]]\nname = 'j'\nimage = 'i'\narrive = 0\n"
        );
        let schedule = Schedule::parse(Path::new("s.toml"), &text).unwrap();
        order(&schedule).iter().map(Planned::folder).collect()
    }

    #[test]
    fn every_second_repeat_goes_the_other_way_round_after_the_warm_up() {
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
    }
}
