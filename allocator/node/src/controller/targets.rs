//! Targets that orders set.

use paceline_api::figures::exact;
use paceline_api::live::Refusal;
use paceline_wire::{Direction, Targets};

/// Refuses an order without targets, invalid targets, and those that contradict each other or the
/// ones that stay.
pub(super) fn check(new: Targets, before: Targets, direction: Direction) -> Result<(), Refusal> {
    let refuse = |why: String| Err(Refusal::Impossible(why));
    if new == Targets::default() {
        return refuse(
            "no target is given: give an acceptable loss, an objective or a batch latency"
                .to_owned(),
        );
    }
    for (name, value) in [("acceptable", new.acceptable), ("objective", new.objective)] {
        if let Some(value) = value.filter(|value| !value.is_finite()) {
            return refuse(format!("invalid {name} {value}: expected a finite number"));
        }
    }
    if let Some(seconds) = new.batch_latency.filter(|x| !x.is_finite() || *x <= 0.0) {
        return refuse(format!("invalid batch latency {seconds}: expected a number above 0"));
    }
    let acceptable = new.acceptable.or(before.acceptable);
    let objective = new.objective.or(before.objective);
    if let (Some(acceptable), Some(objective)) = (acceptable, objective)
        && direction.better(acceptable, objective)
    {
        return refuse(format!(
            "invalid acceptable {}: it is reached after objective {}; \
             expected a loss that is reached before it",
            exact(acceptable),
            exact(objective)
        ));
    }
    Ok(())
}

/// The targets that are set, as a sentence.
pub(super) fn in_words(targets: Targets) -> String {
    let parts = [
        targets.acceptable.map(|loss| format!("acceptable is {}", exact(loss))),
        targets.objective.map(|loss| format!("objective is {}", exact(loss))),
        targets.batch_latency.map(|seconds| format!("batch latency is {} s", exact(seconds))),
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
    fn invalid_targets_are_refused_with_the_reason() {
        let none = Targets::default();
        let down = Direction::Minimize;
        for (new, before, words) in [
            (none, none, "no target is given"),
            (targets(Some(f64::NAN), None, None), none, "invalid acceptable NaN"),
            (targets(None, Some(f64::INFINITY), None), none, "invalid objective inf"),
            (targets(None, None, Some(0.0)), none, "invalid batch latency 0"),
            (targets(Some(1.0), Some(2.0), None), none, "acceptable 1: it is reached after"),
            (targets(Some(1.0), None, None), targets(None, Some(2.0), None), "after objective 2"),
        ] {
            let refusal = check(new, before, down).unwrap_err().to_string();
            assert!(refusal.contains(words), "{refusal}");
        }
        assert_eq!(check(targets(Some(2.0), Some(1.0), Some(0.1)), none, down), Ok(()));
        let up = targets(Some(1.0), Some(2.0), None);
        assert_eq!(check(up, none, Direction::Maximize), Ok(()));
    }

    #[test]
    fn targets_are_described_as_a_sentence() {
        assert_eq!(
            in_words(targets(Some(0.3), None, Some(0.5))),
            "acceptable is 0.3, batch latency is 0.5 s"
        );
    }
}
