//! Figures from losses: their mean between two readings, and the progress from one to the next.

mod learning;

pub use learning::{Learning, Step};
pub use paceline_wire::mean_between;
