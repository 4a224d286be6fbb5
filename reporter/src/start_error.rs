//! Why a reporter did not start.

use std::io;

use paceline_wire::Direction;

/// Why a reporter did not start. Nothing of it is left running then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A setting has a value that it cannot have.
    #[error("{setting} is {value:?}, but must be {allowed}")]
    Setting {
        /// The builder's method or the environment's variable.
        setting: &'static str,
        /// Its value.
        value: String,
        /// What it may be.
        allowed: &'static str,
    },
    /// The objective would be reached before the acceptable loss.
    #[error(
        "the acceptable loss {acceptable} lies beyond the objective {objective}, although the loss \
         is to be {}",
        match direction { Direction::Minimize => "minimized", Direction::Maximize => "maximized" }
    )]
    Targets {
        /// The acceptable loss.
        acceptable: f64,
        /// The objective.
        objective: f64,
        /// Which way the loss is meant to go.
        direction: Direction,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The reporter's own thread cannot run.
    #[error("cannot start the reporter's thread")]
    Thread(#[source] io::Error),
}
