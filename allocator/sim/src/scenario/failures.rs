use serde::Deserialize;

use crate::random::Lazy;

/// When a node or a job fails, in one of two ways, and what it takes to come back.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failures {
    /// At random: so many seconds pass on average from its beginning to its failure, and the time
    /// is exponential, so that it does not matter how long it has worked.
    pub every: Option<f64>,
    /// At these moments: a node's in seconds of the run, a job's in seconds after it arrived. What
    /// does not work then does not fail.
    #[serde(default)]
    pub at: Vec<f64>,
    /// For how many seconds it is down.
    #[serde(default)]
    pub down: f64,
}

impl Failures {
    /// The first failure after `now` of what began at `origin`.
    pub(crate) fn next(&self, now: f64, origin: f64, random: &mut Lazy) -> Option<f64> {
        if let Some(mean) = self.every {
            return Some(now + random.stream().exponential(mean));
        }
        let moments = self.at.iter().map(|at| origin + at);
        moments.filter(|at| *at > now).min_by(f64::total_cmp)
    }
}
