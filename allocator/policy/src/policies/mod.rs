//! All policies.
//!
//! A policy answers one of three kinds of frames (`AnyPolicy`): of jobs, of the tasks of gangs, or
//! of whole gangs. The `registry` lists all policies. Each is one file or folder, with its
//! algorithm and its source. Its reasons are in [`reason`](crate::reason): data, which become a
//! sentence only when a person reads them.

pub mod dltap;
pub mod dqoes;
pub mod fifo;
pub mod fifo_gang;
pub mod flowcon;
pub mod kod2;
mod none;
pub mod paceline;
mod registry;
pub mod specon;
pub mod spread;
pub mod srpt;
pub mod tradl;

pub use dltap::Dltap;
pub use dqoes::Dqoes;
pub use fifo::Fifo;
pub use fifo_gang::FifoGang;
pub use flowcon::FlowCon;
pub use kod2::Kod2;
pub use none::Unlimited;
pub use paceline::Paceline;
pub use registry::{ALL, AnyPolicy, Entry, Scope, build};
pub use specon::SpeCon;
pub use spread::Spread;
pub use srpt::Srpt;
pub use tradl::Tradl;
