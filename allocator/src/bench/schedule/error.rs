//! Why a schedule cannot be used, in words that say what to change.

use std::path::PathBuf;

/// A schedule that cannot be used. `paceline` exits with code 2.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// The file cannot be read.
    #[error("cannot read the schedule {}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The text is not TOML, or not of a schedule's form.
    #[error("{}:{line}: {problem}", file.display())]
    Form {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong, with the line's text.
        problem: String,
    },
    /// A value is not one of those that make sense.
    #[error("{}:{line}: {field} is {value}, but {rule}", file.display())]
    Value {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The field, with the job that it belongs to.
        field: String,
        /// What stands there.
        value: String,
        /// What may stand there.
        rule: String,
    },
    /// An arm of the command line cannot be run.
    #[error("--arm {name}: {problem}")]
    Policy {
        /// The arm, or the policy that it is of.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
}
