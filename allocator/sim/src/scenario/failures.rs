use serde::Deserialize;

use crate::random::LazyStream;

/// When a node or a job fails (at random or at given moments), and for how long.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Failures {
    /// At random: the mean seconds from a start to a failure. The times are exponential, so they do
    /// not depend on how long it has worked.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0, "maximum" = 1e9)))]
    pub every: Option<f64>,
    /// At these moments: seconds of the run for a node, seconds after its arrival for a job.
    /// Failures while it is down are ignored.
    #[serde(default)]
    pub at: Vec<f64>,
    /// For how many seconds it is down.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1e9)))]
    pub down: f64,
}

impl Failures {
    /// The first failure after `now` of an item that began at `origin`.
    pub(crate) fn next(&self, now: f64, origin: f64, random: &mut LazyStream) -> Option<f64> {
        if let Some(mean) = self.every {
            return Some(now + random.stream().exponential(mean));
        }
        let moments = self.at.iter().map(|at| origin + at);
        moments.filter(|at| *at > now).min_by(f64::total_cmp)
    }
}
