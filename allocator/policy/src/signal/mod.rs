//! What is read out of losses: their mean between two readings, and progress from one to the next.

mod learning;
mod mean;

pub use learning::{Learning, Step};
pub use mean::mean_between;
