use super::{Account, Cluster, Effect, Engine, Event};
use crate::limiter::{Counters, LimiterSettings, SettingError};
use crate::policy::Policy;
use crate::unit::{JobId, Moment};

/// What decides for one machine: as a single node, or as several.
#[derive(Debug)]
pub enum AnyEngine {
    /// The machine is one node.
    Node(Box<Engine>),
    /// The machine's CPUs are several nodes, under one policy.
    Cluster(Box<Cluster>),
}

impl AnyEngine {
    /// Takes in one event that happened at `now`. Events come in the order of their time.
    #[must_use]
    pub fn step(&mut self, now: Moment, event: Event) -> Vec<Effect> {
        match self {
            Self::Node(engine) => engine.step(now, event),
            Self::Cluster(cluster) => cluster.step(now, event),
        }
    }

    /// Takes in the CPU time in seconds that everything on one of several nodes has used.
    pub fn node_used(&mut self, now: Moment, node: &str, seconds: f64) {
        match self {
            Self::Node(_) => {}
            Self::Cluster(cluster) => cluster.node_used(now, node, seconds),
        }
    }

    /// How a job stands; `None` if there is none of that name.
    pub fn account(&self, id: &JobId) -> Option<Account> {
        match self {
            Self::Node(engine) => engine.account(id),
            Self::Cluster(cluster) => cluster.account(id),
        }
    }

    /// Whether a decision is due when a job has reached a target.
    pub fn minds_targets(&self) -> bool {
        match self {
            Self::Node(engine) => engine.minds_targets(),
            Self::Cluster(cluster) => cluster.minds_targets(),
        }
    }

    /// Whether there is a job as [`Engine::awaits_batches`] says.
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

    /// Lets another policy decide from now on, as [`Engine::decided_by`].
    pub fn decided_by(&mut self, policy: Box<dyn Policy>) {
        match self {
            Self::Node(engine) => engine.decided_by(policy),
            Self::Cluster(cluster) => cluster.decided_by(policy),
        }
    }

    /// Limits by other settings from now on, as [`Engine::limit_by`].
    pub fn limit_by(&mut self, settings: LimiterSettings) -> Result<LimiterSettings, SettingError> {
        match self {
            Self::Node(engine) => engine.limit_by(settings),
            Self::Cluster(cluster) => cluster.limit_by(settings),
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
