//! What policies share of reading losses: progress from one frame to the next.

mod learning;

pub use learning::{Learning, Step};
