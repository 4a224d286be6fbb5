//! One line of a samples file: what the machine and its jobs did since the line before.
//!
//! `paceline run --samples FILE` writes about one such JSON line a second, and `paceline bench`
//! reads them. Samples are for people and charts; the inputs of a policy are in the frames
//! (`--record`), which replay exactly. An unknown value is `None`, never 0. A reader ignores
//! fields that it does not know, so that later versions can add some.

use serde::{Deserialize, Serialize};

/// The machine and its managed jobs at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since the run of the allocator began.
    pub t: f64,
    /// The same moment as Unix seconds.
    pub unix: f64,
    /// The machine.
    pub node: SampleNode,
    /// The managed jobs that are running.
    pub jobs: Vec<SampleJob>,
    /// What control has cost so far.
    pub cost: Option<SampleCost>,
}

/// What the allocator itself has taken since its run began.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampleCost {
    /// Its own CPU time, in seconds.
    pub cpu_seconds: f64,
    /// Limits written.
    pub writes: u64,
    /// Time spent in writing them, in seconds.
    pub write_seconds: f64,
}

/// The machine in a [`Sample`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampleNode {
    /// How many CPUs the machine has.
    pub cpus: f64,
    /// The mean CPU use of everything on the machine since the sample before, as a fraction of it.
    pub cpu: Option<f64>,
}

/// One job in a [`Sample`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampleJob {
    /// The job's name.
    pub id: String,
    /// The mean of the losses reported since the sample before.
    pub loss: Option<f64>,
    /// The number of steps since the job began.
    pub steps: Option<u64>,
    /// The mean CPU use since the sample before, as a fraction of the machine.
    pub cpu: Option<f64>,
    /// The fraction of the time since the sample before in which it was throttled.
    pub throttled: Option<f64>,
    /// The limit in force in its control group, as a fraction of the machine; 1 means unlimited.
    pub limit: Option<f64>,
    /// The loss at which the job is acceptable.
    pub target_acceptable: Option<f64>,
    /// The loss at which the job has reached its objective.
    pub target_objective: Option<f64>,
    /// When the job reports that it reached the acceptable loss, in Unix seconds.
    pub acceptable_at: Option<f64>,
    /// When the job reports that it reached its objective, in Unix seconds.
    pub objective_at: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_reads_back_as_it_was_written() {
        let sample = Sample {
            t: 12.0,
            unix: 1_760_000_000.5,
            node: SampleNode { cpus: 2.0, cpu: Some(0.93) },
            jobs: vec![SampleJob {
                id: "vae".to_owned(),
                loss: Some(118.2),
                steps: Some(1234),
                cpu: None,
                throttled: Some(0.5),
                limit: Some(0.25),
                target_acceptable: Some(120.0),
                target_objective: None,
                acceptable_at: Some(1_760_000_000.2),
                objective_at: None,
            }],
            cost: Some(SampleCost { cpu_seconds: 0.25, writes: 3, write_seconds: 0.1 }),
        };
        let line = serde_json::to_string(&sample).expect("a sample serialises");
        assert!(line.contains(r#""cpu":null"#), "an unknown value is written as null: {line}");
        assert_eq!(serde_json::from_str::<Sample>(&line).expect("it parses"), sample);
    }

    #[test]
    fn missing_and_unknown_fields_are_accepted() {
        let line = r#"{"t":1,"unix":2,"node":{"cpus":2},"jobs":[{"id":"a","new":1}],"later":true}"#;
        let sample: Sample = serde_json::from_str(line).expect("it parses");
        assert_eq!((sample.node.cpu, sample.cost), (None, None));
        assert_eq!(sample.jobs.first().map(|job| job.steps), Some(None));
    }
}
