//! The classifier that `mnist` trains.

mod model;

pub use model::Net;
