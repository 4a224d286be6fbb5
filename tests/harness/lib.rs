//! What the tests on a real engine share: an environment that is removed afterwards, jobs to run in
//! it, and the allocator as a user starts it.
//!
//! The program `test-fixtures` builds the images of the programs under test and a private Swarm.
//! Then it runs the tests, and removes all of it. A test that stops machines of a Swarm, cuts them
//! off or removes their images starts a Swarm of its own. `.config/nextest.toml` says which tests
//! run alone, and which take turns.
//!
//! `faulty_engine` is the real engine behind a proxy with random faults. `load` simulates many containers: processes, control groups and networks are real, the engine
//! and endpoints are not. `sample_snapshot` makes sample snapshots, which `cargo run -p
//! paceline-system-tests --example page` serves. `tests/browser` tests that page in Chromium, and
//! `tests/promtool.rs` tests metrics, alerts and the dashboard's queries. `tests/cgroup2` boots a
//! small Debian with cgroup v2 and systemd in a virtual machine, with KVM or emulated, and runs there
//! what cargo has built. The programs are on a second disk, the exit status comes over a second serial port, and writes to the
//! system disk are discarded.

mod agent_fleet;
mod allocator;
mod cost;
mod fake_daemon;
mod faulty_engine;
mod fixtures;
mod image;
mod load;
mod needs;
mod printed;
mod private;
mod random;
mod reaction;
pub mod sample_snapshot;
mod swarm;
mod test_env;
mod wait;
mod wall_clock;

pub use agent_fleet::{AgentFleet, OneTask};
pub use allocator::{Allocator, LOCKS, json_lines};
pub use cost::Cost;
pub use fake_daemon::{FakeDaemon, example};
pub use faulty_engine::FaultyEngine;
pub use fixtures::{Fixtures, Prepared, SWARM_ALLOCATOR, SWARM_JOB, TestSwarm, VARIABLE};
pub use image::{image_of, program};
pub use load::Load;
pub use needs::{Needs, bars, frameworks};
pub use private::PrivateEngine;
pub use random::Random;
pub use reaction::{BUSY, quantiles, quota_change};
pub use swarm::{PrivateSwarm, SwarmAddress, SwarmEngine};
pub use test_env::{Job, Limits, TestEnv};
pub use wait::{WAIT_TIMEOUT, until, until_within};
pub use wall_clock::WallClock;
