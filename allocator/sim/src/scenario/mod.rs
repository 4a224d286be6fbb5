//! A scenario: which jobs arrive when, on which nodes, how they learn, and which policies are to be
//! compared on them. It is read from TOML, checked once and trusted from then on.

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

use crate::Tempo;
use file::{JobFile, ScenarioFile};

pub use arm::Arm;
pub(crate) use draw::BATCHES;
pub use error::ScenarioError;
pub use failures::Failures;
pub use file::{Checkpoint, Placement};
pub use gang::{Gang, Layout, Tasks};
pub(crate) use job::{CROWD, IN_TURNS, held_back, threads_for};
pub use job::{Company, Job, ReachedAt, Start, Told};
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
    /// What is compared where nobody says otherwise.
    pub arms: Vec<Arm>,
    /// Over how many seeds, where nobody says otherwise.
    pub seeds: u32,
    /// When a run ends in which jobs are left, in seconds: infinite if it never does.
    pub until: f64,
    /// Where jobs go that name no node.
    pub placement: Placement,
    /// What stands below every policy.
    pub limiter: LimiterOptions,
    /// The parameters of policies, by their names.
    pub params: BTreeMap<String, Params>,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// How fast they all are while it lasts: their usual speed, unless somebody measured another. Bounds and
    /// gangs go by the usual one.
    pub tempo: Tempo,
    /// Distributed jobs.
    pub gangs: Vec<Gang>,
    /// Placements of the gangs' parameter servers to compare with.
    pub layouts: Vec<Layout>,
    groups: Vec<JobFile>,
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
    /// How much a neighbour of equal share slows jobs down, and others as they count.
    pub contention: f64,
    /// The share that is used by whatever else runs there, and that no job gets.
    pub background: f64,
    /// When it fails, if it ever does.
    pub failures: Option<Failures>,
}

impl Node {
    /// The share of it that there is for jobs.
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

    /// What stands below a policy.
    pub fn limiter_below(&self, arm: &Arm) -> LimiterSettings {
        let entry = policies::Entry::named(&arm.policy);
        self.limiter.below(entry.map_or_else(Enforcement::default, |entry| entry.enforcement))
    }

    /// The workload of a seed: everything that is random about it drawn.
    pub fn draw(&self, seed: u64) -> Vec<Job> {
        draw::draw(self, &self.groups, seed)
    }

    /// The same for a yardstick that goes by what owners declare: these works, by the names of jobs. No
    /// job's least share is below this one, unless its own is said.
    #[must_use]
    pub fn declaring(mut self, works: &BTreeMap<String, f64>, least: f64) -> Self {
        for group in &mut self.groups {
            group.declared = works.get(&group.name).copied().or(group.declared);
            group.min.get_or_insert(least);
        }
        self
    }

    /// The same where every job says this of the number of its steps.
    #[must_use]
    pub fn stating(mut self, stated: Stated) -> Self {
        for group in &mut self.groups {
            group.stated_total = stated;
        }
        self
    }

    /// The same where nothing stops a job that goes on from a checkpoint or is moved.
    #[must_use]
    pub fn moving_at_no_cost(mut self) -> Self {
        for cost in self.groups.iter_mut().filter_map(|group| group.checkpoint.as_mut()) {
            (cost.mean, cost.deviation, cost.start) = (0.0, 0.0, false);
        }
        self
    }

    /// A policy as this scenario sets it, ready to run.
    pub fn policy(&self, arm: &Arm) -> Result<AnyPolicy, ScenarioError> {
        let none = Params::default();
        let params = self.params.get(&arm.policy).unwrap_or(&none);
        Ok(policies::build(&arm.policy, arm.variant, params)?)
    }
}

#[cfg(test)]
mod tests;
