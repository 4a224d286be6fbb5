//! The autoencoder that `vae` trains.

mod model;

pub use model::{Batch, Vae};
