//! How many threads to compute with.

use std::num::NonZeroUsize;
use std::str::FromStr;
use std::thread;

/// More than any machine is good for.
const MOST: i32 = 1024;

/// How many threads to compute with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// As many as the process may use: what its affinity and the CPU quota of its control group
    /// leave, rounded down, and at least one.
    #[default]
    Auto,
    /// So many.
    Fixed(i32),
}

impl Threads {
    /// The number.
    pub fn count(self) -> i32 {
        match self {
            // The standard library looks at affinity and at quotas of both versions.
            Self::Auto => {
                let available = thread::available_parallelism().map_or(1, NonZeroUsize::get);
                i32::try_from(available).unwrap_or(MOST).min(MOST)
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
        let count = text.parse().ok().filter(|count| (1..=MOST).contains(count));
        count.map(Self::Fixed).ok_or_else(|| format!("it must be auto, or 1 to {MOST}"))
    }
}
