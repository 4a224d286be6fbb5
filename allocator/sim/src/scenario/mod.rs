//! A scenario: which jobs arrive when, on which nodes, how they learn, and which policies are
//! compared. It is read from TOML and checked once; after that it is valid.

mod arm;
mod check;
mod draw;
mod error;
mod failures;
mod file;
mod gang;
mod job;
mod library;
mod rules;
mod stated;

use std::collections::BTreeMap;

use paceline_policy::limiter::{Enforcement, LimiterOptions, LimiterSettings};
use paceline_policy::policies::AnyPolicy;
use paceline_policy::{Params, policies};

use crate::SpeedProfile;
use file::{JobFile, ScenarioFile};

pub use arm::Arm;
pub(crate) use draw::DEFAULT_BATCHES;
pub use error::ScenarioError;
pub use failures::Failures;
pub use file::{Checkpoint, Placement};
pub use gang::{Gang, Layout, Tasks};
pub use job::{Competition, EarlyReports, Job, ReachedAt, Start};
pub(crate) use job::{FAIR_THREADS, OVERSUBSCRIBED_THREADS, held_back, threads_for};
#[cfg(test)]
pub(crate) use library::scenario;
pub use library::{LIBRARY, Listed};
pub use stated::{Stated, Total};

/// A checked scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// What it is about, for people.
    pub description: String,
    /// The policies that are compared by default.
    pub arms: Vec<Arm>,
    /// The number of seeds by default.
    pub seeds: u32,
    /// When a run ends that still has jobs, in seconds; infinite if it has no such end.
    pub until: f64,
    /// Where jobs without a node go.
    pub placement: Placement,
    /// The limiter settings below every policy.
    pub limiter: LimiterOptions,
    /// The parameters of policies, by policy name.
    pub params: BTreeMap<String, Params>,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The speed of all nodes during the run, by default their usual speed. Bounds and gangs ignore
    /// it.
    pub speed_profile: SpeedProfile,
    /// Distributed jobs.
    pub gangs: Vec<Gang>,
    /// Placements of the gangs' parameter servers for comparison.
    pub layouts: Vec<Layout>,
    groups: Vec<JobFile>,
}

/// The JSON Schema of a scenario's file.
#[cfg(feature = "schema")]
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(ScenarioFile)
}

/// A machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its CPUs.
    pub cpus: f64,
    /// Its memory, in bytes.
    pub memory: Option<f64>,
    /// By how much a neighbour of equal share slows jobs down; other neighbours by their weight.
    pub contention: f64,
    /// The share used by anything but jobs, which no job gets.
    pub background: f64,
    /// When it fails, if it ever does.
    pub failures: Option<Failures>,
}

impl Node {
    /// The share of it available to jobs.
    pub fn room(&self) -> f64 {
        1.0 - self.background
    }
}

impl Scenario {
    /// Reads the text of a TOML file.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let file: ScenarioFile =
            toml::from_str(text).map_err(|error| ScenarioError::form(text, &error))?;
        check::check(file)
    }

    /// The limiter settings below a policy.
    pub fn limiter_below(&self, arm: &Arm) -> LimiterSettings {
        let entry = policies::Entry::named(&arm.policy);
        self.limiter.below(entry.map_or_else(Enforcement::default, |entry| entry.enforcement))
    }

    /// The number of its jobs.
    pub fn jobs(&self) -> usize {
        let counts = self.groups.iter().map(|group| usize::try_from(group.count));
        counts.map(|count| count.unwrap_or(usize::MAX)).sum::<usize>() + self.gangs.len()
    }

    /// The workload of a seed, with all random values drawn.
    pub fn draw(&self, seed: u64) -> Vec<Job> {
        draw::draw(self, &self.groups, seed)
    }

    /// The scenario with these declared works by job name, for oracles that use them. The minimum
    /// share of each job becomes `least`, unless it has one of its own.
    #[must_use]
    pub fn declaring(mut self, works: &BTreeMap<String, f64>, least: f64) -> Self {
        for group in &mut self.groups {
            group.declared = works.get(&group.name).copied().or(group.declared);
            group.min.get_or_insert(least);
        }
        self
    }

    /// The scenario in which every job states this number of steps.
    #[must_use]
    pub fn stating(mut self, stated: Stated) -> Self {
        for group in &mut self.groups {
            group.stated_total = stated;
        }
        self
    }

    /// The scenario in which resuming from a checkpoint and moving cost no time.
    #[must_use]
    pub fn moving_at_no_cost(mut self) -> Self {
        for cost in self.groups.iter_mut().filter_map(|group| group.checkpoint.as_mut()) {
            (cost.mean, cost.deviation, cost.start) = (0.0, 0.0, false);
        }
        self
    }

    /// A policy with the parameters of this scenario.
    pub fn policy(&self, arm: &Arm) -> Result<AnyPolicy, ScenarioError> {
        let none = Params::default();
        let params = self.params.get(&arm.policy).unwrap_or(&none);
        Ok(policies::build(&arm.policy, arm.variant, params)?)
    }
}

#[cfg(test)]
mod tests;
