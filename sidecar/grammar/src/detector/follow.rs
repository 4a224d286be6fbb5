//! What a line means where it stands: in a block, in a section, below a heading or before a dict.

use std::ops::ControlFlow;

use paceline_lines::bytes;
use paceline_lines::observation::{Observation, Phase, Span};
use paceline_lines::terminal::End;

use super::block;
use super::heading::Heading;
use super::item::{has_score, is_item};
use super::line::row_of_two;
use super::opening::may_open;
use super::section::{self, Section};
use super::{Detector, Kind, Place, fill_epoch};
use crate::Reading;
use crate::draft::Draft;
use crate::key_value::{KeyValue, begins_with_brackets};

/// Maximum length of the text before a dict that is read for counters, in bytes.
const MAX_BEFORE_DICT: usize = 200;

impl Detector {
    /// Follows blocks and sections, and corrects the reading of the line by them. Returns the parts
    /// of a loss that are complete with this line.
    #[inline]
    pub(super) fn follow_blocks(
        &mut self,
        text: &str,
        index: usize,
        reading: &mut Reading,
    ) -> Option<Observation> {
        let kind = self.kind(index);
        if *reading == Reading::Foreign {
            return self.open_block(text);
        }
        // Most lines with a loss are of one form, and in no block.
        let is_usual = *reading == Reading::Says && kind == Kind::Other && !self.block.is_active();
        if is_usual && index != self.table() {
            let found = &self.draft.found;
            if found.losses.iter().any(|loss| loss.phase == Phase::Train) {
                self.trained = Place::of(found).or(self.trained);
            }
            return None;
        }
        self.follow_others(text, kind, index, reading)
    }

    #[inline(never)]
    fn follow_others(
        &mut self,
        text: &str,
        kind: Kind,
        index: usize,
        reading: &mut Reading,
    ) -> Option<Observation> {
        let is_plain = matches!(kind, Kind::Dicts | Kind::General);
        if kind == Kind::Dicts
            && matches!(reading, Reading::Says | Reading::SaysBeforeBar)
            && self.is_within_evaluation()
        {
            self.draft.retain(|loss| loss.phase != Phase::Train);
            if self.draft.found.losses.is_empty() {
                *reading = Reading::Known;
                return None;
            }
        }
        if kind == Kind::Dicts
            && !text.starts_with('{')
            && let Some((before, _)) = text.split_once('{')
        {
            if KeyValue::held_out(before).is_some() {
                self.draft.found.losses.iter_mut().for_each(block::hold_out);
            }
            if before.ends_with(']') && before.contains('%') {
                return self.bar_before_dict(before);
            }
            if self.count_before_dict(before) {
                *reading = Reading::Says;
            }
        }
        if kind == Kind::Bars
            && let ControlFlow::Break(held) = self.follow_bar(reading)
        {
            return held;
        }
        let found = &self.draft.found;
        match *reading {
            Reading::Says if found.losses.is_empty() => None,
            Reading::Says if is_plain && found.step.is_none() => {
                self.without_step(text, kind, reading);
                None
            }
            Reading::Says if is_plain => {
                if kind == Kind::General && self.summaries.estimates(found) {
                    self.draft.found.losses.iter_mut().for_each(|loss| loss.span = Span::Epoch);
                }
                self.summaries.see(&self.draft.found, true);
                self.with_step()
            }
            // Without a bar, the step may be in a heading above the dict.
            Reading::SaysBeforeBar if self.block.has_counters() && !self.held.has_bar() => {
                let is_new = self.block.losses(&mut self.draft, false);
                *reading = if is_new { Reading::Says } else { Reading::Known };
                None
            }
            Reading::Says if index == self.table() && self.columns.held_out => {
                let found = &mut self.draft.found;
                found.losses.iter_mut().for_each(block::hold_out);
                (found.step, found.total_steps, found.step_in_epoch) = (None, None, false);
                None
            }
            Reading::Says if found.step.is_some() && kind != Kind::Bars => {
                if found.losses.iter().any(|loss| loss.phase == Phase::Train) {
                    self.trained = Place::of(found);
                }
                if self.block.is_active() { self.block.line(false) } else { None }
            }
            Reading::Says
            | Reading::SaysBeforeBar
            | Reading::Bar { .. }
            | Reading::Known
            | Reading::Foreign => {
                if self.block.is_active() {
                    self.block.line(false)
                } else {
                    None
                }
            }
        }
    }

    /// Takes a frame of a bar. If it is one of an evaluation or ends that, breaks with the parts of a loss that are
    /// complete with it.
    fn follow_bar(&mut self, reading: &mut Reading) -> ControlFlow<Option<Observation>> {
        let found = &mut self.draft.found;
        if self.block.section() == Some(Section::HeldOut) {
            let goes_on = matches!(reading, Reading::Says | Reading::Bar { moved: true });
            match self.bars.held_out(found, self.block.is_at_start()) {
                None if goes_on => return ControlFlow::Break(self.block.end()),
                Some(true) if *reading == Reading::Says => {}
                _ => *reading = Reading::Known,
            }
            return ControlFlow::Break(None);
        }
        if *reading == Reading::Says
            && let Some(is_mean) = self.bars.second_of_epoch(self.heading, found)
        {
            if !is_mean {
                *reading = Reading::Known;
            }
            return ControlFlow::Break(None);
        }
        if matches!(reading, Reading::Says | Reading::Bar { .. }) {
            self.bars.trains(found);
        }
        ControlFlow::Continue(())
    }

    /// Whether the line before was a frame of a bar of held-out data that goes on. A dict below it is of a step of the
    /// evaluation.
    fn is_within_evaluation(&self) -> bool {
        let (index, reading) = self.last;
        reading != Reading::Foreign && self.grammars.get(index).is_some_and(|last| last.evaluates())
    }

    /// Takes the losses of a line without a step, and corrects its reading.
    fn without_step(&mut self, text: &str, kind: Kind, reading: &mut Reading) {
        let found = &self.draft.found;
        let is_counted = found.epoch.is_some();
        let is_summary = kind == Kind::General
            && !is_counted
            && (self.summaries.is_final(text, found)
                || (!self.block.is_inside() && self.summaries.is_new(found)));
        if is_summary {
            *reading = Reading::Known;
            return;
        }
        self.summaries.see(found, is_counted);
        if let Some(epoch) = found.epoch {
            self.reach(epoch);
        } else if self.block.are_parts(found) {
            *reading = Reading::Known;
            return;
        }
        fill_epoch(self.heading, None, true, &mut self.draft.found);
        let is_row = !self.block.has_step() && row_of_two(text).is_some();
        let is_new = if is_row {
            self.block.row(&mut self.draft.found)
        } else {
            self.block.losses(&mut self.draft, is_item(text))
        };
        if !is_new {
            *reading = Reading::Known;
        }
        let found = &self.draft.found;
        if is_new && found.losses.iter().any(|loss| loss.phase == Phase::Train) {
            self.batch = Place::of(found);
            self.epoch = found.epoch.or(self.epoch);
        }
    }

    /// A line without a step names its epoch. If it is later than those of the training, it ends an evaluation
    /// whose results have come. The evaluation itself may name the epoch that it follows.
    fn reach(&mut self, epoch: f64) {
        let evaluates = self.block.section() == Some(Section::HeldOut);
        let is_same = |last: f64| evaluates && are_same(epoch, last);
        let is_later = |last: Option<f64>| last.is_none_or(|last| epoch > last && !is_same(last));
        if is_later(self.trained.and_then(|last| last.epoch)) && is_later(self.epoch) {
            self.block.next_epoch(epoch, &self.draft.found.losses);
        }
    }

    /// Takes the losses and the step of a line.
    fn with_step(&mut self) -> Option<Observation> {
        let found = &self.draft.found;
        let place = Place::of(found);
        // The first steps of the training may follow the results of an evaluation.
        let begins = self.trained.is_none() && self.block.has_held_out();
        if self.block.section() == Some(Section::HeldOut) && !begins && !self.goes_on(place) {
            let found = &mut self.draft.found;
            found.losses.iter_mut().for_each(block::hold_out);
            // The counters are those of the evaluation.
            if self.trained.is_some_and(|last| found.step != Some(last.step)) {
                (found.step, found.total_steps, found.step_in_epoch) = (None, None, false);
            }
            return self.block.close();
        }
        if found.losses.iter().any(|loss| loss.phase == Phase::Train) {
            self.trained = place;
            self.block.keep(found);
            return self.block.end();
        }
        self.block.close()
    }

    /// Takes a bar on the line of a dict, before it. Returns the losses that waited for its step.
    fn bar_before_dict(&mut self, before: &str) -> Option<Observation> {
        let mut draft = Draft::default();
        let bars = self.grammars.iter_mut().filter(|grammar| grammar.is_of_bars());
        for grammar in bars {
            let reading = grammar.read(before, End::Newline, &mut draft);
            if let Reading::Bar { moved } = reading {
                let mut found = draft.found;
                self.bars.frame(self.heading, reading, &mut found);
                let is_new = self.held.bar(&mut found, moved);
                return Some(found).filter(|found| is_new && !found.losses.is_empty());
            }
            if reading != Reading::Foreign {
                break;
            }
        }
        None
    }

    /// Takes the counters before a dict that lacks some: `epoch 3, step 5: {'loss': 0.5}`. Returns whether
    /// there is a step.
    fn count_before_dict(&mut self, before: &str) -> bool {
        let found = &self.draft.found;
        let has_step = found.step.is_some();
        if (has_step && found.epoch.is_some()) || found.losses.is_empty() {
            return false;
        }
        // The percentage is that of a bar.
        if before.len() > MAX_BEFORE_DICT || before.contains('%') {
            return false;
        }
        let mut counters = Draft::default();
        if !self.general.before_dict(before, &mut counters) {
            return false;
        }
        let Observation { step, step_in_epoch, total_steps, epoch, total_epochs, .. } =
            counters.found;
        let found = &mut self.draft.found;
        // In `Step 5: {'steps': 1, 'loss': 0.5}`, the dict counts the updates of accumulated gradients.
        let begins_with_step = before.starts_with("Step ") || before.starts_with("step ");
        if !has_step || (begins_with_step && step.is_some()) {
            (found.step, found.step_in_epoch) = (step, step_in_epoch);
            found.total_steps = total_steps.or(found.total_steps);
        }
        found.epoch = found.epoch.or(epoch);
        found.total_epochs = found.total_epochs.or(total_epochs);
        step.is_some() && !has_step
    }

    /// Whether a step continues those of the training, also in its next epoch.
    fn goes_on(&self, place: Option<Place>) -> bool {
        let (Some(place), Some(last)) = (place, self.trained) else { return false };
        // After the result of an evaluation, not within it: its lines may have an epoch of their own.
        let is_next_epoch = || {
            let epochs = place.epoch.zip(last.epoch);
            let losses = &self.draft.found.losses;
            epochs.is_some_and(|(next, last)| {
                next > last && (self.block.has_held_out() || self.block.may_be_over(next, losses))
            })
        };
        place.total == last.total && (place.step > last.step || is_next_epoch())
    }

    /// Whether a batch in brackets is a later one of the training. After the result of an evaluation, epochs may
    /// have another length.
    fn is_later(&self, place: Option<Place>) -> bool {
        let (Some(place), Some(last)) = (place, self.batch) else { return false };
        let (epoch, last_epoch) = (place.epoch.unwrap_or_default(), last.epoch.unwrap_or_default());
        let is_same = place.total == last.total;
        let is_next_epoch = epoch > last_epoch && (is_same || self.block.has_held_out());
        // An earlier epoch is that of another run.
        is_next_epoch
            || epoch < last_epoch
            || (is_same && epoch >= last_epoch && place.step > last.step)
    }

    /// The section that a line opens. After the first loss, it may name what is evaluated.
    fn section(&self, text: &str) -> Option<Section> {
        let begins =
            || (self.counts.losses > 0 && section::begins(text)).then_some(Section::HeldOut);
        Section::parse(text).or_else(begins)
    }

    /// Takes the score of an evaluation, or the time of a batch. Returns that time if its loss came before it.
    fn values_of_block(&mut self, text: &str) -> Option<Observation> {
        if self.block.section() == Some(Section::HeldOut) && has_score(text) {
            self.block.results();
        }
        if !self.block.waits_for_time() {
            return None;
        }
        let seconds = self.general.time(text)?;
        self.block.time(seconds)
    }

    /// Reads a line as the heading of a block. A number of steps of an evaluation is a setting.
    fn opens(&mut self, text: &str) -> bool {
        if !self.general.heading(text, &mut self.draft) {
            return false;
        }
        let is_setting = self.draft.held_out && section::is_setting(text);
        if is_setting {
            self.draft.clear();
        }
        !is_setting
    }

    /// Takes the step or the epoch in a row of a table.
    fn counter_of_table(&mut self, row: &str) {
        if self.general.heading(row, &mut self.draft) {
            self.block.count(self.draft.found.step, self.draft.global);
            self.draft.clear();
        } else if let Some(heading) = Heading::parse(row) {
            self.block.count_epoch(heading.epoch);
        }
    }

    /// Reads a line without a loss: it may begin or end a block or a section.
    #[inline(never)]
    fn open_block(&mut self, text: &str) -> Option<Observation> {
        let has_number = bytes::contains_digit(text.as_bytes());
        if has_number {
            self.general.heading_of_run(text);
        }
        if (!has_number || Section::may_be_numbered(text))
            && let Some(section) = self.section(text)
        {
            let epoch = if has_number { section::epoch(text) } else { None };
            let held = self.block.enter(section, epoch);
            return held.or_else(|| self.queued.take());
        }
        if has_number && may_open(text) && self.opens(text) {
            let place = Place::of(&self.draft.found);
            // Directly below `***** Eval results *****`, the step is that of the evaluation.
            let is_outside = if self.batch.is_some() && begins_with_brackets(text) {
                self.is_later(place)
            } else {
                !self.block.is_at_start() && (self.trained.is_none() || self.goes_on(place))
            };
            let is_of_section = self.block.section() == Some(Section::HeldOut) && !is_outside;
            let held = if is_of_section {
                None
            } else {
                self.block.open(&self.draft.found, self.draft.held_out)
            };
            self.draft.clear();
            return held.or_else(|| self.queued.take());
        }
        let timed = if has_number { self.values_of_block(text) } else { None };
        let row = row_of_two(text);
        if let Some(row) = &row {
            self.counter_of_table(row);
        }
        let ended = if self.queued.is_some() { self.queued.take() } else { None };
        if !text.contains(char::is_alphanumeric) {
            return ended.or_else(|| self.block.border());
        }
        let held = if self.block.is_active() {
            self.block.line(row.is_some() || is_item(text))
        } else {
            None
        };
        ended.or(held).or(timed)
    }
}

/// Whether two epochs with fractions are the same, one of them printed with fewer digits: 0.204 and 0.2041.
fn are_same(first: f64, second: f64) -> bool {
    let unit = unit_of(first).max(unit_of(second));
    unit < 1.0 && (first - second).abs() < unit.min(MAX_UNIT) / 2.0
}

/// The unit of the last digit of a number, of which some are looked at.
fn unit_of(number: f64) -> f64 {
    let mut unit = 1.0;
    for _ in 0..MAX_DIGITS {
        if ((number / unit).round() - number / unit).abs() < 1e-6 {
            break;
        }
        unit /= 10.0;
    }
    unit
}

/// Maximum number of digits after the point that are looked at.
const MAX_DIGITS: usize = 6;
/// Zeros at the end are often left out, so that 0.2 may be 0.20.
const MAX_UNIT: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_are_compared_as_they_are_printed() {
        for (first, second) in [(0.204, 0.2041), (1.25, 1.2537), (0.2041, 0.204), (0.33, 0.3333)] {
            assert!(are_same(first, second), "{first} {second}");
        }
        for (first, second) in [(1.0, 2.0), (0.2, 0.24), (0.25, 0.26), (0.204, 0.2051), (3.0, 3.2)]
        {
            assert!(!are_same(first, second), "{first} {second}");
        }
    }
}
