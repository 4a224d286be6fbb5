//! DLTAP's reasons.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::unit::{JobId, count, saturate};

/// A node's score for a task, by its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// The fraction of the node's CPU that stays free.
    pub cpu: f64,
    /// The fraction of its memory.
    pub memory: f64,
    /// For a ps: the workers of its job on the node.
    pub near: Option<Near>,
}

/// The workers of a ps's job on a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Near {
    /// The weight of workers against free capacity.
    pub weight: f64,
    /// How many are there.
    pub here: usize,
    /// How many the job has.
    pub workers: usize,
}

impl Score {
    /// Eq. 1 for a worker, Eq. 2 for a ps, on a scale of 100 (A2).
    pub fn total(&self) -> f64 {
        let default = 100.0 * f64::midpoint(self.cpu, self.memory);
        saturate(default + self.near.as_ref().map_or(0.0, Near::term))
    }

    /// The same to nine decimals, so that sums that differ by rounding alone are equal.
    pub(crate) fn rounded(&self) -> f64 {
        let total = self.total();
        let scaled = total * 1e9;
        if scaled.is_finite() { scaled.round() / 1e9 } else { total }
    }
}

impl Near {
    /// Eq. 3, weighted.
    fn term(&self) -> f64 {
        let part = if self.workers == 0 { 0.0 } else { count(self.here) / count(self.workers) };
        saturate(self.weight * 100.0) * part
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, memory, near } = self;
        write!(f, "100 x mean of the free fractions, cpu {cpu:.4} and memory {memory:.4}")?;
        near.as_ref().map_or(Ok(()), |Near { weight, here, workers }| {
            write!(f, ", + {weight} x 100 x {here} of {workers} workers")
        })
    }
}

/// Why a task stays unbound.
#[derive(Clone, Debug, PartialEq)]
pub enum Obstacle {
    /// It fits on no node.
    NoRoom {
        /// The cores that it needs.
        cpu: f64,
        /// The bytes that it needs.
        memory: f64,
        /// The most cores that a node has free.
        most_cpu: f64,
        /// The most bytes.
        most_memory: f64,
    },
    /// A worker of its job fits on no node, and workers are bound together.
    Gang {
        /// That worker.
        worker: JobId,
    },
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoom { cpu, memory, most_cpu, most_memory } => write!(
                f,
                "needs {cpu} cores and {memory} bytes, and no node has both free: \
                 at most {most_cpu} cores and {most_memory} bytes"
            ),
            Self::Gang { worker } => {
                write!(f, "worker {worker} of its job fits on no node: the whole job waits")
            }
        }
    }
}

impl Serialize for Score {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Obstacle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
