//! Types that the crates of the allocator share: snapshots, orders, audit entries, samples, labels and
//! settings.
//!
//! [`live`] is the interface of a running daemon, [`audit`] what it did and why, and [`samples`]
//! what it measured. [`labels`] and [`nodes`] are what a user sets. Nothing here decides, and
//! nothing here writes a limit.

pub mod audit;
pub mod bounded;
pub mod budget;
pub mod clock;
pub mod figures;
pub mod json_lines;
pub mod labels;
pub mod live;
pub mod nodes;
pub mod plain;
pub mod regular;
pub mod samples;
pub mod service_manager;
pub mod setting_path;
pub mod signals;
pub mod stamp;
pub mod state_folder;
pub mod table;
pub mod token;
pub mod toml_error;
pub mod usage;
