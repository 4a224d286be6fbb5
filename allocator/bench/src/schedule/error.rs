//! Errors of schedules; each message says what to change.

use std::path::PathBuf;

/// A schedule that cannot be used. `paceline` exits with code 2.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// The file cannot be read.
    #[error("cannot read the schedule {}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The text is not TOML, or does not have the structure of a schedule.
    #[error("{}:{line}: {problem}", file.display())]
    Form {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong, with the line's text.
        problem: String,
    },
    /// A value is invalid.
    #[error("{}:{line}: {field} is {value}: {rule}", file.display())]
    Value {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The field, with the job that it belongs to.
        field: String,
        /// The invalid value.
        value: String,
        /// What is expected instead.
        rule: String,
    },
    /// An arm of the command line cannot be run.
    #[error("--arm {name}: {problem}")]
    Policy {
        /// The arm's name, or its policy's.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
}
