//! Fakes for tests of the crates that use this one (feature `testing`): the runtime of a Kubernetes node, and
//! containers as Docker describes them.

#[cfg(feature = "cri")]
pub use crate::cri::fake::{Behavior, Fake, FakeContainer, id};
pub use crate::docker::container::described;
