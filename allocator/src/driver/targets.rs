//! Targets that people set.

use paceline_wire::{Direction, Targets};

use crate::live::Refusal;

/// Refuses targets that are none, or that contradict each other or those that stay.
pub(super) fn check(new: Targets, before: Targets, direction: Direction) -> Result<(), Refusal> {
    let refuse = |why: String| Err(Refusal::Impossible(why));
    if new == Targets::default() {
        return refuse(
            "nothing is to be set: give an acceptable loss, an objective or a batch latency"
                .to_owned(),
        );
    }
    for (name, value) in [("acceptable", new.acceptable), ("objective", new.objective)] {
        if let Some(value) = value.filter(|value| !value.is_finite()) {
            return refuse(format!("{name} is {value}, but must be a finite number"));
        }
    }
    if let Some(seconds) = new.batch_latency.filter(|x| !x.is_finite() || *x <= 0.0) {
        return refuse(format!("batch latency is {seconds}, but must be a number above 0"));
    }
    let acceptable = new.acceptable.or(before.acceptable);
    let objective = new.objective.or(before.objective);
    if let (Some(acceptable), Some(objective)) = (acceptable, objective)
        && direction.better(acceptable, objective)
    {
        return refuse(format!(
            "acceptable {acceptable} lies beyond objective {objective}: it must be reached first"
        ));
    }
    Ok(())
}

/// The targets that are given, for people.
pub(super) fn in_words(targets: Targets) -> String {
    let parts = [
        targets.acceptable.map(|loss| format!("acceptable is {loss}")),
        targets.objective.map(|loss| format!("objective is {loss}")),
        targets.batch_latency.map(|seconds| format!("batch latency is {seconds} s")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(acceptable: Option<f64>, objective: Option<f64>, latency: Option<f64>) -> Targets {
        Targets { acceptable, objective, batch_latency: latency }
    }

    #[test]
    fn targets_that_make_no_sense_are_refused_with_the_reason() {
        let none = Targets::default();
        let down = Direction::Minimize;
        for (new, before, words) in [
            (none, none, "nothing is to be set"),
            (targets(Some(f64::NAN), None, None), none, "acceptable is NaN"),
            (targets(None, Some(f64::INFINITY), None), none, "objective is inf"),
            (targets(None, None, Some(0.0)), none, "batch latency is 0"),
            (targets(Some(1.0), Some(2.0), None), none, "acceptable 1 lies beyond objective 2"),
            (targets(Some(1.0), None, None), targets(None, Some(2.0), None), "beyond objective 2"),
        ] {
            let refusal = check(new, before, down).unwrap_err().to_string();
            assert!(refusal.contains(words), "{refusal}");
        }
        assert_eq!(check(targets(Some(2.0), Some(1.0), Some(0.1)), none, down), Ok(()));
        let up = targets(Some(1.0), Some(2.0), None);
        assert_eq!(check(up, none, Direction::Maximize), Ok(()));
    }

    #[test]
    fn what_was_set_is_said() {
        assert_eq!(
            in_words(targets(Some(0.3), None, Some(0.5))),
            "acceptable is 0.3, batch latency is 0.5 s"
        );
    }
}
