//! The policies by name.

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
mod why;

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
pub use why::Why;
