//! Says how long a comparison takes, once that can be known.

use paceline_api::clock::Clock;
use paceline_api::figures::span;
use paceline_policy::unit::counter;

/// After this time the user is informed, in seconds.
const MIN_TIME: f64 = 3.0;
/// A shorter rest is not worth a line, in seconds.
const MIN_REST: f64 = 5.0;

/// The time that runs have taken so far.
#[derive(Debug)]
pub(super) struct TimeNeeded {
    clock: Clock,
    said: bool,
}

impl TimeNeeded {
    pub(super) fn start() -> Self {
        Self { clock: Clock::start(), said: false }
    }

    /// Takes in that `done` of `all` runs are done. Prints once how long the others take.
    #[expect(clippy::print_stderr, reason = "the user waits, and standard output has the result")]
    pub(super) fn note(&mut self, done: u64, all: u64) {
        let took = self.clock.now().seconds();
        if let Some(text) = text(took, done, all).filter(|_| !self.said) {
            eprintln!("{text}");
            self.said = true;
        }
    }
}

/// What to say after `took` seconds, if anything.
fn text(took: f64, done: u64, all: u64) -> Option<String> {
    let rest = took / counter(done) * counter(all.saturating_sub(done));
    (took >= MIN_TIME && rest >= MIN_REST)
        .then(|| format!("{done} of {all} runs are done; the others take about {}", span(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_comparison_is_announced_and_short_one_not() {
        assert_eq!(text(2.0, 1, 1000), None);
        assert_eq!(text(4.0, 4, 5), None);
        let said = text(4.0, 2, 100).unwrap();
        assert_eq!(said, "2 of 100 runs are done; the others take about 3m 16s");
    }
}
