//! The simulator's predictions for a bench, fitted to the solo runs and those of `none` only.
//!
//! Batch times of solo runs are scaled to the speed of the other runs. The machine's speed is fitted
//! by how long batches took under `none`. Each run is simulated at the speed that it had, second by
//! second. On several nodes a move costs a container's start (`startup`), beside the jobs of the
//! target node. `fidelity` compares each job's figure with the prediction of the same repeat, which
//! has the same arrivals.

mod background_load;
mod fidelity;
mod forecast;
mod predictor;
mod repeat;
mod speed;
mod startup;
mod text;

pub(crate) use forecast::Forecast;
pub(crate) use predictor::{Predictor, SIMULATIONS};

#[cfg(test)]
mod tests;
