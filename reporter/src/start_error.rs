//! Why a reporter did not start.

use std::io;

use paceline_wire::Direction;

/// Why a reporter did not start. No part of it is left running then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A setting has an invalid value.
    #[error("invalid {setting} {value:?}: expected {allowed}")]
    Setting {
        /// The builder's method or the environment's variable.
        setting: &'static str,
        /// Its value.
        value: String,
        /// The allowed values.
        allowed: &'static str,
    },
    /// The objective would be reached before the acceptable loss.
    #[error(
        "invalid objective {objective}: expected {} the acceptable loss {acceptable}, since a {} loss \
                 is better",
        match direction { Direction::Minimize => "at most", Direction::Maximize => "at least" },
        match direction { Direction::Minimize => "smaller", Direction::Maximize => "larger" }
    )]
    Targets {
        /// The acceptable loss.
        acceptable: f64,
        /// The objective.
        objective: f64,
        /// Whether smaller or larger is better.
        direction: Direction,
    },
    /// Another process listens on the address that was asked for. [`Builder::ignore_taken_address`]
    /// takes another port in its place.
    ///
    /// [`Builder::ignore_taken_address`]: crate::Builder::ignore_taken_address
    #[error(
        "cannot listen on {address}: the address is taken; end the process that holds it, or choose \
         another address"
    )]
    Taken {
        /// The address.
        address: String,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The reporter's thread cannot be started.
    #[error("cannot start the reporter's thread")]
    Thread(#[source] io::Error),
}
