//! What a job says of itself: over HTTP, or as datagrams of statsd's form.

pub mod report;
pub mod statsd;
pub mod trainer_status;
