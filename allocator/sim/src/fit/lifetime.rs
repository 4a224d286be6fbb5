//! When the jobs of a recording arrived and ended.

use std::collections::BTreeMap;

use paceline_policy::JobId;

use super::Recording;

/// One job's times in its recording, in seconds since the recording began.
///
/// The live controller runs the policy as soon as a job's endpoint first answers, the job has
/// reached a target, or its container has ended. (Policies that use no targets, such as `FlowCon`,
/// do not run at targets.) So the frames of these moments are a few hundredths of a second late at
/// most. What happens before the first answer, such as the container's start and reading data, is
/// in no frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Lifetime {
    /// The job.
    pub id: JobId,
    /// The first frame that it is in.
    pub arrived: f64,
    /// The first frame that it is no longer in; `None` if it is in the last one.
    pub ended: Option<f64>,
    /// The first frame in which it has reached its acceptable loss.
    pub acceptable: Option<f64>,
    /// The same for its objective.
    pub objective: Option<f64>,
}

impl Lifetime {
    /// From its arrival to its end.
    pub fn completion(&self) -> Option<f64> {
        self.ended.map(|ended| ended - self.arrived)
    }
}

/// The jobs of a recording, in the order of their arrival.
///
/// A job that disappears and reappears, for example after a restart, ends with its last frame.
pub fn lifetimes(recording: &Recording) -> Vec<Lifetime> {
    let mut all: BTreeMap<&JobId, Lifetime> = BTreeMap::new();
    for frame in recording.frames() {
        for job in &frame.jobs {
            let life = all.entry(&job.id).or_insert_with(|| Lifetime {
                id: job.id.clone(),
                arrived: frame.t,
                ended: None,
                acceptable: None,
                objective: None,
            });
            life.ended = None;
            if job.reached.acceptable {
                life.acceptable.get_or_insert(frame.t);
            }
            if job.reached.objective {
                life.objective.get_or_insert(frame.t);
            }
        }
        let gone = |life: &&mut Lifetime| !frame.jobs.iter().any(|job| job.id == life.id);
        for life in all.values_mut().filter(gone) {
            life.ended.get_or_insert(frame.t);
        }
    }
    let mut all: Vec<Lifetime> = all.into_values().collect();
    all.sort_by(|a, b| a.arrived.total_cmp(&b.arrived));
    all
}
