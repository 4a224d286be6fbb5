//! The losses that a job is to reach.

/// The losses that a job is to reach, where it is known what they should be.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Targets {
    /// From here on, the model is usable.
    pub acceptable: Option<f64>,
    /// Here, the job is done.
    pub objective: Option<f64>,
}

impl Targets {
    /// Both targets.
    pub const fn new(acceptable: f64, objective: f64) -> Self {
        Self { acceptable: Some(acceptable), objective: Some(objective) }
    }

    /// These, or the defaults if there are none. Somebody who sets one of the two is not given the
    /// other as well: it might lie on the wrong side.
    #[must_use]
    pub fn or(self, defaults: Self) -> Self {
        if self == Self::default() { defaults } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_target_of_ones_own_replaces_both_defaults() {
        let own = Targets { acceptable: Some(90.0), objective: None };
        assert_eq!(own.or(Targets::new(120.0, 110.0)), own);
        assert_eq!(Targets::default().or(own), own);
    }
}
