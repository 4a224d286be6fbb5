//! The times in a line: of a batch, since the start, or one that does not say what it is of. The last is that of a
//! step where there is a line for each step: `iter 5 | loss 0.5 | took 1.2 s`.

use paceline_lines::observation::Elapsed;

use super::known_words::is_one;
use super::pair::Pair;
use crate::draft::Draft;

/// The steps and times of the lines so far.
#[derive(Debug, Default)]
pub(super) struct LineTime {
    /// The epoch and the step of the last line.
    last: Option<(Option<f64>, u64)>,
    /// There is a line for each step.
    of_each: bool,
    /// The last time without a unit, and whether it has been less than the one before. So it is not counted from
    /// the start.
    plain: Option<f64>,
    falls: bool,
}

impl LineTime {
    /// Takes the counters of a line of the training and its times: one after a word such as "took", and one after
    /// "time" alone. Returns the time of a step, and whether times that were not used came before it.
    pub(super) fn take(
        &mut self,
        (epoch, step): (Option<f64>, u64),
        took: Option<f64>,
        plain: Option<f64>,
    ) -> Option<(f64, bool)> {
        let last = self.last.replace((epoch, step));
        // The first step has begun with the training.
        self.of_each |= last.is_none() && step <= 1;
        let before = last.filter(|(last_epoch, last)| *last_epoch == epoch && *last != step);
        if let Some((_, before)) = before {
            self.of_each = before.checked_add(1) == Some(step);
        }
        if let Some(plain) = plain {
            let last = self.plain.replace(plain).filter(|_| before.is_some() && self.of_each);
            self.falls |= last.is_some_and(|last| plain < last);
        }
        let is_warm = took.is_none();
        let time = took.or(plain.filter(|_| self.falls)).filter(|_| self.of_each)?;
        Some((time, is_warm))
    }
}

/// The times of parts of a step, before their sum: `forward 0.5 s, backward 0.25 s, total 0.75 s`.
#[derive(Debug, Default)]
pub(super) struct TimedParts {
    count: u32,
    sum: f64,
}

impl TimedParts {
    /// Takes a number. Returns whether it is the sum of the times before it.
    pub(super) fn sum_up(&mut self, pair: &Pair<'_>, last: &str, before: &[&str]) -> bool {
        if pair.unit.is_empty() {
            return false;
        }
        let Some(seconds) = pair.in_seconds() else { return false };
        if before.is_empty() && last.eq_ignore_ascii_case("total") {
            let difference = (self.sum - seconds).abs();
            return self.count > 1 && difference <= MAX_ROUNDING * seconds;
        }
        self.count += 1;
        self.sum += seconds;
        false
    }
}

/// How much of a sum of times may be lost by rounding its parts.
const MAX_ROUNDING: f64 = 0.03;

/// Whether a number is the time that a line took: `took 1.2 s`, and `in 1.2s` at its end.
pub(super) fn took(pair: &Pair<'_>, last: &str, before: &[&str]) -> bool {
    let is_end = || last.eq_ignore_ascii_case("in") && pair.after.trim_end().is_empty();
    let is_named = before.is_empty() && (last.eq_ignore_ascii_case("took") || is_end());
    is_named && pair.in_seconds().is_some()
}

/// Takes the time of a batch in units of which `parts` are a second.
pub(super) fn of_batch(pair: &Pair<'_>, parts: f64, draft: &mut Draft) {
    let plain = || Some(pair.value / parts).filter(|_| pair.unit.is_empty());
    let seconds = pair.in_seconds().or_else(plain);
    draft.found.warm |= seconds == Some(0.0);
    draft.found.batch_seconds = seconds.filter(|seconds| *seconds > 0.0 && seconds.is_finite());
}

/// Takes the time since the start, also as a clock shows it. `before`: further words of its name. Days before the
/// clock are not read.
pub(super) fn since_start(pair: &Pair<'_>, before: &[&str], draft: &mut Draft) {
    let is_plain = |word: &&str| is_plain_time(word) || is_one(word, &WHOLE);
    if !before.iter().all(is_plain) || pair.after.trim_start().starts_with("day") {
        return;
    }
    let plain = || Some(pair.value).filter(|seconds| pair.unit.is_empty() && *seconds > 0.0);
    if let Some(seconds) = pair.clock().or_else(|| pair.in_seconds()).or_else(plain) {
        draft.found.elapsed = Some(Elapsed { seconds, is_named: true });
    }
}

/// Takes a time that is called so, with `before` as further words of its name. Milliseconds are those of a step.
pub(super) fn plain(pair: &Pair<'_>, before: &[&str], draft: &mut Draft) {
    let found = &mut draft.found;
    let last = before.last();
    let is = |words: &[&str]| last.is_some_and(|word| is_one(word, words));
    // What is beside a time of loading may be that of many steps.
    if is(&["load", "loading"]) {
        return;
    }
    if is(&["data"]) {
        draft.beside_time = true;
    } else if pair.unit == "ms" {
        found.batch_seconds = found.batch_seconds.or_else(|| pair.in_seconds());
    } else if let Some(clock) = pair.clock() {
        found.elapsed.get_or_insert(unnamed(clock));
    } else {
        let seconds = pair.in_seconds().or(Some(pair.value).filter(|_| pair.unit.is_empty()));
        let seconds = seconds.filter(|seconds| *seconds > 0.0);
        // Beside the times of its parts, the total is that of the step.
        let is_total = draft.beside_time && is(&["total"]);
        draft.time = if is_total { seconds.or(draft.time) } else { draft.time.or(seconds) };
    }
}

/// A time that may be that since the start, or that of a step.
pub(super) fn unnamed(seconds: f64) -> Elapsed {
    Elapsed { seconds, is_named: false }
}

/// Whether a word says no more than that a number is a time.
pub(super) fn is_plain_time(word: &str) -> bool {
    is_one(word, &["time", "elapsed", "took"])
}

/// Words beside that for a time since the start.
const WHOLE: [&str; 4] = ["total", "training", "since", "start"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_that_of_a_step_if_each_has_a_line() {
        let mut times = LineTime::default();
        let mut took = |step, seconds| {
            times.take((Some(1.0), step), Some(seconds), None).map(|(time, warm)| (time, !warm))
        };
        let first = (took(1, 9.0), took(2, 2.0), took(3, 2.5));
        assert_eq!(first, (Some((9.0, true)), Some((2.0, true)), Some((2.5, true))));
        assert_eq!((took(103, 80.0), took(203, 90.0)), (None, None));
    }

    #[test]
    fn time_since_the_start_is_not_that_of_a_step() {
        let mut times = LineTime::default();
        let mut plain = |epoch, step, seconds| times.take((Some(epoch), step), None, Some(seconds));
        assert_eq!(
            (plain(1.0, 1, 0.5), plain(1.0, 2, 1.0), plain(1.0, 3, 1.5)),
            (None, None, None)
        );
        // It begins again with each epoch. The times before the first that is less were not used.
        assert_eq!((plain(2.0, 1, 0.5), plain(2.0, 2, 1.0)), (None, None));
        assert_eq!(
            (plain(2.0, 3, 0.75), plain(3.0, 1, 0.5)),
            (Some((0.75, true)), Some((0.5, true)))
        );
    }
}
