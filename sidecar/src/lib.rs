//! Reads what a training job prints and writes, and publishes its loss and batch latency.
//!
//! Pure code turns bytes into [`Observation`]s. [`paceline_lines`] splits a stream of bytes into lines as
//! a terminal would show them, and [`paceline_grammar`] reads the lines. [`tfevents`] and [`csv`] read
//! files of other forms. [`follow`] reads a log while it is written. [`merger`] combines all sources
//! into one job.
//!
//! All parsers produce the same type, [`Observation`], and [`merger`] makes one job of overlapping
//! sources. Both are pure. The merger takes each step's loss once: from one source, one
//! rank and one kind of mean. Latencies are printed, or inferred from times. [`source`] reads
//! bytes on threads of its own: files by [`follow`], the output of programs and containers, and
//! datagrams. [`job`] passes the entries of one read to a
//! `Reporter`, which is the endpoint. The position in the input and the reported counts go to disk
//! together ([`state`]), so a successor counts nothing twice.
//!
//! [`forward`] passes the progress on to other systems, on request and on threads of its own.
//!
//! [`explain`] tells people what is read of a log and why, and suggests patterns for other lines.
//!
//! `sidecar/frameworks` makes fixtures: it runs real frameworks, each beside a callback that records
//! the truth. The results in `sidecar/tests/frameworks` test the parsers.
//!
//! [`Observation`]: paceline_lines::observation::Observation

pub mod cli;
pub mod clock;
pub mod csv;
pub mod explain;
pub mod follow;
#[cfg(feature = "forward")]
pub mod forward;
pub mod job;
pub mod merger;
mod own_children;
mod own_program;
pub mod push;
mod say;
mod shortage;
pub mod source;
pub mod state;
pub mod tfevents;
