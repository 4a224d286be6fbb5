//! Reports that a job sends itself: over HTTP, or as statsd datagrams.

pub mod report;
pub mod senders;
pub mod statsd;
pub mod trainer_status;
