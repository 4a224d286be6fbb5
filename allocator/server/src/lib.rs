//! The servers of the daemon: page, JSON API and metrics ([`web`]), and the socket for orders
//! ([`control`]).

pub mod control;
pub mod web;

#[doc(hidden)]
pub use paceline_local::runtime;
