use paceline_policy::JobId;

/// A distributed job.
#[derive(Clone, Debug, PartialEq)]
pub struct Gang {
    /// Its name.
    pub id: JobId,
    /// When it arrives, in seconds.
    pub arrive: f64,
    /// Core-seconds of its workers until it is done.
    pub work: f64,
    /// Its parameter servers: as many as their `min`.
    pub servers: Tasks,
    /// Its workers.
    pub workers: Tasks,
    /// By how much each additional worker slows all workers down.
    pub overhead: f64,
    /// The number of its model's parameters.
    pub parameters: f64,
    /// Its training steps.
    pub steps: f64,
}

/// Tasks of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Tasks {
    /// The fewest with which the job runs.
    pub min: u32,
    /// The most that it can use.
    pub max: u32,
    /// The cores that each needs.
    pub cpu: f64,
    /// The memory that each needs, in bytes.
    pub memory: f64,
    /// The nodes of tasks that are already bound, in order.
    pub nodes: Vec<String>,
}

/// A placement of parameter servers to compare with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Its name.
    pub name: String,
    /// The node of each parameter server.
    pub servers: Vec<String>,
}

impl Gang {
    /// Work per second with this number of workers.
    pub fn speed(&self, workers: u32) -> f64 {
        let workers = f64::from(workers);
        workers * self.workers.cpu / (1.0 + self.overhead * (workers - 1.0).max(0.0))
    }
}
