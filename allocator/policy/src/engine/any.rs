use super::{Cluster, Effect, Engine, Event, JobStatus};
use crate::limiter::{Counters, LimiterSettings, SettingError};
use crate::policy::Policy;
use crate::unit::{JobId, Moment};

/// The decision engine of one machine: a single node, or several.
#[derive(Debug)]
pub enum AnyEngine {
    /// The machine is one node.
    Node(Box<Engine>),
    /// The machine's CPUs are several nodes, under one policy.
    Cluster(Box<Cluster>),
}

impl AnyEngine {
    /// Handles one event that happened at `now`. Events must come in the order of their time.
    #[must_use]
    pub fn step(&mut self, now: Moment, event: Event) -> Vec<Effect> {
        match self {
            Self::Node(engine) => engine.step(now, event),
            Self::Cluster(cluster) => cluster.step(now, event),
        }
    }

    /// Records the CPU time, in seconds, that everything on one of several nodes has used.
    pub fn node_used(&mut self, now: Moment, node: &str, seconds: f64) {
        match self {
            Self::Node(_) => {}
            Self::Cluster(cluster) => cluster.node_used(now, node, seconds),
        }
    }

    /// The state of a job; `None` if the job is unknown.
    pub fn status(&self, id: &JobId) -> Option<JobStatus> {
        match self {
            Self::Node(engine) => engine.status(id),
            Self::Cluster(cluster) => cluster.status(id),
        }
    }

    /// Whether a decision is due when a job has reached a target.
    pub fn reacts_to_targets(&self) -> bool {
        match self {
            Self::Node(engine) => engine.reacts_to_targets(),
            Self::Cluster(cluster) => cluster.reacts_to_targets(),
        }
    }

    /// As [`Engine::awaits_batches`], for any node.
    pub fn awaits_batches(&self) -> bool {
        match self {
            Self::Node(engine) => engine.awaits_batches(),
            Self::Cluster(cluster) => cluster.awaits_batches(),
        }
    }

    /// How often the limiter's guards acted.
    pub fn counters(&self) -> Counters {
        match self {
            Self::Node(engine) => engine.counters(),
            Self::Cluster(cluster) => cluster.counters(),
        }
    }

    /// Replaces the policy, as [`Engine::set_policy`].
    pub fn set_policy(&mut self, policy: Box<dyn Policy>) {
        match self {
            Self::Node(engine) => engine.set_policy(policy),
            Self::Cluster(cluster) => cluster.set_policy(policy),
        }
    }

    /// Replaces the limiter's settings, as [`Engine::set_limiter`].
    pub fn set_limiter(
        &mut self,
        settings: LimiterSettings,
    ) -> Result<LimiterSettings, SettingError> {
        match self {
            Self::Node(engine) => engine.set_limiter(settings),
            Self::Cluster(cluster) => cluster.set_limiter(settings),
        }
    }
}

impl From<Engine> for AnyEngine {
    fn from(engine: Engine) -> Self {
        Self::Node(Box::new(engine))
    }
}

impl From<Cluster> for AnyEngine {
    fn from(cluster: Cluster) -> Self {
        Self::Cluster(Box::new(cluster))
    }
}
