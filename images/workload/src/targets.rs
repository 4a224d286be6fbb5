//! The target losses of a job.

/// The target losses of a job, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Targets {
    /// The loss from which on the model is usable.
    pub acceptable: Option<f64>,
    /// The loss at which the job is done.
    pub objective: Option<f64>,
}

impl Targets {
    /// Both targets.
    pub const fn new(acceptable: f64, objective: f64) -> Self {
        Self { acceptable: Some(acceptable), objective: Some(objective) }
    }

    /// These, or the defaults if there are none. If one of the two is set, the other has no default:
    /// it might lie on the wrong side.
    #[must_use]
    pub fn or(self, defaults: Self) -> Self {
        if self == Self::default() { defaults } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_own_target_replaces_both_defaults() {
        let own = Targets { acceptable: Some(90.0), objective: None };
        assert_eq!(own.or(Targets::new(120.0, 110.0)), own);
        assert_eq!(Targets::default().or(own), own);
    }
}
