//! What the tests on a real engine share: a bed that is empty again afterwards, jobs to put into
//! it, and the allocator as a user starts it.

mod allocator;
mod bed;
mod cost;
mod crowd;
mod fixtures;
mod image;
pub mod made_up;
mod needs;
mod office;
mod offices;
mod printed;
mod private;
mod swarm;
mod wait;
mod wall_clock;

pub use allocator::{Allocator, json_lines};
pub use bed::{Bed, Job, Limits};
pub use cost::Cost;
pub use crowd::Crowd;
pub use fixtures::{Fixtures, Prepared, SWARM_ALLOCATOR, SWARM_JOB, TestSwarm, VARIABLE};
pub use image::{image_of, program};
pub use needs::{Needs, frameworks};
pub use office::{Office, example};
pub use offices::{Offices, OneTask};
pub use private::PrivateEngine;
pub use swarm::{PrivateSwarm, SwarmAddress, SwarmEngine};
pub use wait::{PATIENCE, until, until_within};
pub use wall_clock::WallClock;
