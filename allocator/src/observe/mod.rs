//! What runs, what it uses and what it says of itself. Nothing here has an opinion, and nothing
//! here writes.

pub mod cgroup;
pub mod container;
pub mod endpoint;
pub mod meters;
pub mod mounts;
pub mod namespace;
pub mod node;
pub mod own;
mod owner;
mod small_file;
pub mod stats;
