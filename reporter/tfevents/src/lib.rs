//! Writes TensorBoard event files with scalars, and knows their records' checksum.
//!
//! [`record`] frames bytes, [`event`] encodes what a record contains, and [`Writer`] appends events to a
//! file of its own. A job links this crate, so it has one dependency: the three messages that are written
//! are encoded by hand, which is less code than a protobuf library would add.

pub mod event;
pub mod record;
mod writer;

pub use event::Scalar;
pub use writer::{Counts, OWN_SUFFIX, Writer};
