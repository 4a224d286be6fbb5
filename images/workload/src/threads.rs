//! The number of threads to compute with.

use std::num::NonZeroUsize;
use std::str::FromStr;
use std::thread;

/// More threads than any machine can use.
const MAX_THREADS: i32 = 1024;

/// The number of threads to compute with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// As many as the process may use: what its affinity and the CPU quota of its control group
    /// leave, rounded down, and at least one.
    #[default]
    Auto,
    /// A fixed number.
    Fixed(i32),
}

impl Threads {
    /// Resolves it to a number.
    pub fn count(self) -> i32 {
        match self {
            // The standard library considers affinity and the quotas of both cgroup versions.
            Self::Auto => {
                let available = thread::available_parallelism().map_or(1, NonZeroUsize::get);
                i32::try_from(available).unwrap_or(MAX_THREADS).min(MAX_THREADS)
            }
            Self::Fixed(count) => count,
        }
    }
}

impl FromStr for Threads {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let count = text.parse().ok().filter(|count| (1..=MAX_THREADS).contains(count));
        count.map(Self::Fixed).ok_or_else(|| format!("expected auto, or 1 to {MAX_THREADS}"))
    }
}
