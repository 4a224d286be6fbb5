//! What all benches of one command share.

use paceline_runtime::Runtime;

use super::results::Environment;
use super::stop::Stop;

/// The container engine, the environment and the stop signal of one command.
#[derive(Debug)]
pub(crate) struct BenchContext {
    pub(crate) runtime: Runtime,
    /// The container engine's address for the allocator; `None` is the default one.
    pub(crate) host: Option<String>,
    /// Without the images, which each bench adds.
    pub(crate) environment: Environment,
    pub(crate) stop: Stop,
}
