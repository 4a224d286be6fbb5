//! Bars below headings: whether they count the steps of an epoch or of the run, and which of them
//! belong to an evaluation.

use paceline_lines::observation::{Observation, Phase};

use super::block::hold_out;
use super::heading::Heading;
use crate::{Reading, tqdm};

/// The bars of a log.
#[derive(Debug, Default)]
pub(super) struct Bars {
    /// The bar began below a heading.
    began: bool,
    /// The bar went on over a heading, so it counts the steps of the run.
    goes_on: bool,
    /// The epoch of the heading above the last frame, its step and its total.
    last: Option<(f64, u64, Option<u64>)>,
    /// The bar of the training.
    training: Option<TrainingBar>,
    /// The first bar below the heading of an epoch.
    first: Option<FirstBar>,
    evaluated: Evaluated,
    passes: Passes,
    counted: Counted,
}

/// The bar of the training, in its last frame.
#[derive(Clone, Copy, Debug)]
struct TrainingBar {
    /// The number that it counts up to.
    total: Option<u64>,
    /// It was at its end.
    ended: bool,
    /// A bar that counts up to the same number is now one of an evaluation.
    evaluates: bool,
}

/// The first bar below the heading of an epoch.
#[derive(Clone, Debug)]
struct FirstBar {
    /// The epoch of the heading.
    epoch: f64,
    total: u64,
    /// The name of its loss.
    name: String,
    /// It was at its end.
    ended: bool,
}

/// From where the passes of bars that name no epoch are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Counted {
    /// As usual: the first pass is that of epoch 1.
    #[default]
    FromOne,
    /// The same, and the last frame with a loss was of the first pass.
    First,
    /// The line below the first pass named epoch 0.
    FromZero,
}

/// The bars of an evaluation before the training. A bar that is at its start when another one begins is that of the
/// training.
#[derive(Debug, Default)]
struct Evaluated {
    /// What the bar of the training counts up to.
    waiting: Option<u64>,
    /// What the last bar counts up to, and whether it is still at its start.
    last: Option<(u64, bool)>,
}

impl Evaluated {
    /// Takes a frame. Returns whether its bar is that of the training, which goes on.
    fn is_over(&mut self, step: u64, total: u64) -> bool {
        match self.last {
            Some((last, true)) if last != total && step == 0 => self.waiting = Some(last),
            Some(_) | None => {}
        }
        let is_at_start = self.last.is_none_or(|(last, start)| start || last != total);
        self.last = Some((total, is_at_start && step == 0));
        step > 0 && self.waiting == Some(total)
    }
}

/// The passes of a bar below the heading of the first epoch, if that is the only one.
#[derive(Debug, Default)]
struct Passes {
    /// The epoch of the first heading, and whether another one followed.
    first: Option<f64>,
    others: bool,
    /// The step of the last frame, and what it counts up to.
    last: Option<(u64, u64)>,
    /// Passes after the first.
    more: u32,
}

impl Passes {
    /// The epoch of a frame of a bar that has begun again after a whole pass.
    fn epoch(&mut self, heading: Heading, found: &Observation) -> Option<f64> {
        let (step, total) = (found.step?, found.total_steps?);
        self.others |= self.first.is_some_and(|first| first.total_cmp(&heading.epoch).is_ne());
        self.first = self.first.or(Some(heading.epoch));
        if self.others {
            return None;
        }
        let (before, of) = self.last.unwrap_or((step, total));
        if of == total {
            self.last = Some((step, total));
            self.more = self.more.saturating_add(u32::from(before >= total && step <= total / 2));
        }
        let fits = heading.epochs.is_none_or(|epochs| u64::from(self.more) < epochs);
        (fits && self.more > 0).then(|| heading.epoch + f64::from(self.more))
    }
}

impl Bars {
    /// Takes a frame of a bar, which may be below a heading. Returns whether it has moved on by a whole epoch.
    pub(super) fn frame(
        &mut self,
        heading: Option<Heading>,
        reading: Reading,
        found: &mut Observation,
    ) -> bool {
        let Some(step) = found.step else { return false };
        let mut is_again = false;
        if matches!(reading, Reading::Bar { .. }) {
            if step == 0 {
                self.began = heading.is_some();
            } else if found.total_steps == Some(step) {
                let is_of_epoch = heading.is_some_and(|heading| self.is_of_epoch(heading, step));
                self.began |= is_of_epoch;
                is_again = is_of_epoch && self.last.is_some();
            }
            found.step_in_epoch |= self.began;
        }
        let Some(heading) = heading.filter(|_| found.epoch.is_none()) else { return is_again };
        let total = found.total_steps;
        if let Some((epoch, last, last_total)) = self.last {
            let is_same = last_total == total;
            let is_later = is_same && heading.epoch > epoch && last > 0 && step > last;
            self.goes_on = (self.goes_on || is_later) && step >= last;
        }
        self.last = Some((heading.epoch, step, total));
        found.step_in_epoch &= !self.goes_on;
        is_again
    }

    /// Whether a bar at its end, below a heading, is one of an epoch of which the log has kept only that. The same bar
    /// was at its end below an earlier heading, or it is the first one, where the epoch is not.
    fn is_of_epoch(&self, heading: Heading, total: u64) -> bool {
        match self.last {
            Some((epoch, step, of)) => of == Some(total) && step == total && heading.epoch > epoch,
            None => heading.epoch > 1.0,
        }
    }

    /// Takes a line or a frame that names an epoch or none. Below the first pass of a bar, a line of epoch 0 shows
    /// from where the epochs are counted. Returns the epoch counted by the restarts of a bar, from there.
    pub(super) fn count(
        &mut self,
        is_bar: bool,
        counted: Option<u32>,
        found: &Observation,
    ) -> Option<u32> {
        let trains = found.losses.iter().any(|loss| loss.phase == Phase::Train);
        self.counted = match self.counted {
            Counted::FromZero => Counted::FromZero,
            _ if !trains => self.counted,
            _ if is_bar && found.epoch.is_none() && counted.is_none() => Counted::First,
            Counted::First if !is_bar && found.step.is_none() && found.epoch == Some(0.0) => {
                Counted::FromZero
            }
            Counted::FromOne | Counted::First => Counted::FromOne,
        };
        let less = u32::from(self.counted == Counted::FromZero);
        counted.map(|counted| counted.saturating_sub(less))
    }

    /// Gives a frame without an epoch that of its pass, if only the first epoch had a heading. `counted`: the epoch,
    /// if its bar has begun again.
    pub(super) fn pass(
        &mut self,
        heading: Option<Heading>,
        counted: Option<u32>,
        found: &mut Observation,
    ) {
        let trains = found.losses.iter().any(|loss| loss.phase == Phase::Train);
        let Some(heading) = heading.filter(|_| trains && found.epoch.is_none()) else { return };
        if found.step_in_epoch
            && let Some(epoch) = self.passes.epoch(heading, found).filter(|_| counted.is_some())
        {
            found.epoch = Some(epoch);
            found.total_epochs = found.total_epochs.or(heading.epochs);
        }
    }

    /// Takes a frame outside of evaluations.
    pub(super) fn trains(&mut self, found: &Observation) {
        let trains = found.losses.iter().any(|loss| loss.phase == Phase::Train);
        let counts = found.losses.is_empty() && found.total_steps.is_some();
        if (trains || counts) && found.step.is_some() {
            let (total, ended) = (found.total_steps, found.step == found.total_steps);
            self.training = Some(TrainingBar { total, ended, evaluates: false });
        }
    }

    /// Takes a frame with losses. Behind the end of the first bar below the heading of an epoch, another one of another
    /// length with the same loss is that of an evaluation. Its losses are made those of held-out data. Returns
    /// whether they are means of all the data; `None` for a frame of the training.
    pub(super) fn second_of_epoch(
        &mut self,
        heading: Option<Heading>,
        found: &mut Observation,
    ) -> Option<bool> {
        let (step, total) = (found.step?, found.total_steps?);
        let Heading { epoch, .. } = heading.filter(|_| found.epoch.is_none())?;
        let is_end = step == total;
        let name = &found.losses.first()?.name;
        match &mut self.first {
            Some(first) if first.epoch.total_cmp(&epoch).is_eq() => {
                if first.total == total {
                    first.ended |= is_end;
                    return None;
                }
                (first.ended && first.name == *name).then(|| hold_out_frame(found, is_end))
            }
            first => {
                *first = Some(FirstBar { epoch, total, name: name.clone(), ended: is_end });
                None
            }
        }
    }

    /// Takes a frame below a line such as `Validating`, and makes its losses those of held-out data.
    /// Returns `None` if its bar is the one of the training, which goes on; otherwise whether the
    /// frame has a mean of all the data. `at_start`: it is directly below that line.
    pub(super) fn held_out(&mut self, found: &mut Observation, at_start: bool) -> Option<bool> {
        let is_same =
            |bar: &&mut TrainingBar| found.step.is_some() && bar.total == found.total_steps;
        if let Some(bar) = self.training.as_mut().filter(is_same) {
            // Below the heading, a bar of the training that has ended does not go on.
            bar.evaluates |= bar.ended && at_start;
            if !bar.evaluates {
                return None;
            }
            bar.evaluates = found.step != found.total_steps;
        }
        if let (Some(step), Some(total), None) = (found.step, found.total_steps, self.training)
            && self.evaluated.is_over(step, total)
        {
            return None;
        }
        // A frame without a step has been recognised by its own words.
        let Some(step) = found.step else { return Some(!found.losses.is_empty()) };
        let is_last = found.total_steps == Some(step) && !found.losses.is_empty();
        Some(hold_out_frame(found, is_last))
    }
}

/// Makes the losses of a frame those of held-out data. `is_last`: they are means of all of it. Returns the same.
fn hold_out_frame(found: &mut Observation, is_last: bool) -> bool {
    found.losses.iter_mut().for_each(hold_out);
    (found.step, found.total_steps, found.batch_seconds) = (None, None, None);
    (found.step_in_epoch, found.step_in_samples) = (false, false);
    is_last
}

/// The line directly behind a frame, because some loggers do not end the line of a bar before their
/// own. A dict is read with the bar. Behind a bar of held-out data, a plain `loss` would pass for that of
/// the training, so such a line is not read.
#[inline]
pub(super) fn behind(text: &str) -> Option<&str> {
    if text.ends_with(']') {
        return None;
    }
    let bytes = text.as_bytes();
    let times = memchr::memchr(b'<', bytes)?;
    let start = memchr::memrchr(b'[', bytes.get(..times)?)?;
    let mut depth = 0_u32;
    let end = memchr::memchr2_iter(b'[', b']', bytes.get(start..)?).find(|at| {
        match bytes.get(start + at) {
            Some(b'[') => depth += 1,
            _ => depth = depth.saturating_sub(1),
        }
        depth == 0
    });
    let Some(end) = end else { return behind_rate(text, times) };
    let (bar, after) = text.split_at_checked(start + end + 1)?;
    let is_line = after.starts_with(|c: char| c.is_alphanumeric() || c == '[');
    (is_line && !tqdm::holds_out(bar)).then_some(after)
}

/// The same for a frame whose bracket is not closed: its rate is followed by the line. `times` is where its times are.
#[cold]
fn behind_rate(text: &str, times: usize) -> Option<&str> {
    let rest = text.get(times..)?;
    let at = RATES.iter().filter_map(|rate| rest.find(rate).map(|at| at + rate.len())).min()?;
    let (bar, after) = text.split_at_checked(times + at)?;
    let line = after.trim_ascii_start();
    let is_line = line.starts_with(|c: char| c.is_alphanumeric());
    (is_line && !tqdm::holds_out(bar)).then_some(line)
}

/// The ends of rates.
const RATES: [&str; 2] = ["it/s", "s/it"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_directly_behind_a_bar_is_found() {
        let bar = "fit: 10%|# | 1/10 [00:01<00:09, 1.00it/s]";
        let lists = "fit: 10%|# | 1/10 [00:01<00:09, 1.00it/s, lr=[0.5, 0.25]]";
        for (bar, line) in [(bar, "INFO step 5"), (lists, "2026-01-01 step 5"), (bar, "[x] step 5")]
        {
            assert_eq!(behind(&format!("{bar}{line}")), Some(line), "{line}");
        }
        let open = "fit: 10%|# | 1/10 [00:01<00:09, 1.00it/s";
        for line in ["epoch  loss", "    0     0.5"] {
            assert_eq!(behind(&format!("{open}{line}")), Some(line.trim_start()), "{line}");
        }
        for line in ["", ", loss=0.5"] {
            assert_eq!(behind(&format!("{open}{line}")), None, "{line}");
        }
        for line in ["", " step 5", "{'a': 5}", ", step 5"] {
            assert_eq!(behind(&format!("{bar}{line}")), None, "{line}");
        }
        for desc in ["Eval", "Valid Epoch 1", "Epoch 1 [valid]", "Testing"] {
            let bar = bar.replace("fit", desc);
            assert_eq!(behind(&format!("{bar}Epoch 1 loss: 0.5")), None, "{desc}");
        }
        for text in ["a < b", "[0 < 1", "", "step 5] x"] {
            assert_eq!(behind(text), None, "{text}");
        }
    }
}
