//! Figures from losses: their mean between two readings, and the progress from one to the next.

mod learning;
mod mean;

pub use learning::{Learning, Step};
pub use mean::mean_between;
