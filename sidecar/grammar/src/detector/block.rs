//! Reports over several lines: a heading with the step, then one value on each line. A block gives
//! one loss, the main one of its lines.

use paceline_lines::names::{PART, is_whole_cost, rank};
use paceline_lines::observation::{Loss, Observation, Phase, Span};

use super::item::is_item;
use super::section::Section;
use crate::draft::Draft;

/// Maximum number of lines of a block.
const MAX_LINES: u32 = 80;

/// The block of the current lines.
#[expect(
    clippy::struct_excessive_bools,
    reason = "lines set them independently, so no state names all at once"
)]
#[derive(Debug, Default)]
pub(super) struct Block {
    /// The counters of its heading.
    counters: Option<Observation>,
    section: Option<Section>,
    /// Lines since its heading, or since the section began.
    lines: u32,
    /// A training loss, and one on held-out data, have been reported.
    reported: (bool, bool),
    /// Names in it. A name that comes again begins another report.
    names: Vec<String>,
    /// Parts of a loss, until it is clear that their main loss does not follow.
    held: Option<Observation>,
    /// How many parts are held or were, since the first of them.
    parts: usize,
    /// Its counters are in rows between bars, so a line without words ends it.
    of_rows: bool,
    /// Its step is that of the run, by its name.
    is_global: bool,
    /// It is a table with one value on each row. Its step may come after its losses.
    in_rows: bool,
    /// A line with a score has given the results of the section.
    has_results: bool,
    /// The epoch that the heading of the section names.
    epoch: Option<f64>,
    /// A loss without counters came before its heading, which may then be the last line of that report.
    after_loss: bool,
    /// The last loss of the training, with its name.
    last: (String, f64),
}

impl Block {
    /// Begins a block below a heading with counters. Returns the parts that the previous one held.
    pub(super) fn open(&mut self, heading: &Observation, held_out: bool) -> Option<Observation> {
        let before = self.counters.take();
        let after_loss = self.reported.0 && before.is_none();
        let held = self.close();
        self.after_loss = after_loss;
        self.epoch = None;
        if held_out {
            self.section = Some(Section::HeldOut);
        } else {
            self.section = self.section.filter(|section| *section == Section::Train);
            let (step, total_steps) = (heading.step, heading.total_steps);
            // Several lines may name the same step.
            let above = before.filter(|before| before.step == step && step.is_some());
            self.counters = Some(Observation {
                step,
                total_steps,
                step_in_epoch: heading.step_in_epoch,
                epoch: heading.epoch.or(above.and_then(|above| above.epoch)),
                total_epochs: heading.total_epochs,
                batch_seconds: heading.batch_seconds,
                ..Observation::default()
            });
        }
        held
    }

    /// Begins a section, whose heading may name its epoch. Returns the parts that were held. Directly below a
    /// heading with counters, one such as `train:` only parts its values.
    pub(super) fn enter(&mut self, section: Section, epoch: Option<f64>) -> Option<Observation> {
        let is_inside = section == Section::Train && self.is_open();
        let held = if is_inside { None } else { self.close() };
        (self.section, self.epoch) = (Some(section), epoch);
        held
    }

    /// Whether its heading has counters, and no loss has come below it.
    fn is_open(&self) -> bool {
        self.has_step() && self.reported == (false, false) && self.held.is_none()
    }

    /// Takes the epoch of a line below the step: `step: 5`, then `epoch: 1`. Returns whether it is one.
    pub(super) fn takes_epoch(&mut self, text: &str, epoch: f64) -> bool {
        let counters = self.counters.as_mut().filter(|counters| counters.epoch.is_none());
        let is_known = counters.is_none_or(|counters| counters.step.is_none());
        if is_known || !is_item(text) || !self.is_open() {
            return false;
        }
        self.counters.get_or_insert_default().epoch = Some(epoch);
        true
    }

    /// Takes the time of a batch, from a line below the heading. Returns it if the loss was reported before.
    pub(super) fn time(&mut self, seconds: f64) -> Option<Observation> {
        let counters = self.counters.as_mut()?;
        let batch_seconds = Some(seconds);
        counters.batch_seconds = batch_seconds;
        if let Some(held) = &mut self.held {
            held.batch_seconds = batch_seconds;
        }
        self.reported.0.then(|| Observation { batch_seconds, ..Observation::default() })
    }

    /// Whether the time of its step may follow.
    pub(super) fn waits_for_time(&self) -> bool {
        let has_step = |all: &Observation| all.step.is_some() && all.batch_seconds.is_none();
        !self.reported.1 && self.counters.as_ref().is_some_and(has_step)
    }

    /// Adds a counter of the block, from a line of its own.
    pub(super) fn count(&mut self, step: Option<u64>, is_global: bool) {
        let known = self.counters.as_ref().is_some_and(|counters| counters.step.is_some());
        if !known || (is_global && !self.is_global) {
            self.counters.get_or_insert_default().step = step;
            (self.of_rows, self.is_global) = (true, is_global);
            self.reported.0 |= self.in_rows && self.held.is_some();
        }
    }

    /// Adds the epoch of a table, from a row of its own.
    pub(super) fn count_epoch(&mut self, epoch: f64) {
        if self.counters.as_ref().is_some_and(|counters| counters.epoch.is_some()) {
            // No border is between two tables.
            self.count_row();
        }
        self.counters.get_or_insert_default().epoch = Some(epoch);
        self.of_rows = true;
    }

    /// Takes the losses of a row of a table without a step so far, and keeps the main one until the
    /// table ends. Returns whether `found` then has those of another table.
    pub(super) fn row(&mut self, found: &mut Observation) -> bool {
        let first = |found: &Observation| found.losses.first().map(|loss| rank(&loss.name));
        if self.in_rows
            && let Some(held) = &mut self.held
        {
            let same = |held: &Observation| {
                held.losses.iter().zip(&found.losses).any(|(held, loss)| held.name == loss.name)
            };
            if same(held) {
                std::mem::swap(held, found);
                return true;
            }
            if first(found) >= first(held) {
                return false;
            }
        }
        self.in_rows = true;
        self.held = Some(std::mem::take(found));
        false
    }

    /// Takes the border of a table, or a blank line. Returns the parts that were held.
    pub(super) fn border(&mut self) -> Option<Observation> {
        if self.of_rows || self.in_rows {
            return self.close();
        }
        // `loss: 0.5`, `step: 5` and a border are a report whose step comes last.
        if self.after_loss && self.lines == 0 && self.is_open() {
            self.counters = None;
        }
        None
    }

    /// Ends the section and the block. Returns the parts that were held.
    pub(super) fn end(&mut self) -> Option<Observation> {
        self.section = None;
        self.close()
    }

    /// Ends the block. Returns the parts that were held.
    #[inline]
    pub(super) fn close(&mut self) -> Option<Observation> {
        if self.in_rows && self.counters.is_some() {
            self.count_row();
        }
        if self.counters.is_some() {
            self.counters = None;
        }
        (self.of_rows, self.is_global, self.in_rows) = (false, false, false);
        self.has_results = false;
        self.lines = 0;
        self.reported = (false, false);
        self.names.clear();
        if self.held.is_some() { self.held.take() } else { None }
    }

    /// Gives the loss of a table the counters of its other rows.
    fn count_row(&mut self) {
        if let (Some(held), Some(counters)) = (&mut self.held, &self.counters) {
            held.step = held.step.or(counters.step);
            held.epoch = counters.epoch.or(held.epoch);
        }
    }

    /// The current section.
    pub(super) fn section(&self) -> Option<Section> {
        self.section
    }

    /// Takes a line with a score and without a loss: the results of an evaluation.
    pub(super) fn results(&mut self) {
        self.has_results = self.section == Some(Section::HeldOut);
    }

    /// Ends an evaluation that may be over, because a line with a later epoch of its own follows.
    pub(super) fn next_epoch(&mut self, epoch: f64, losses: &[Loss]) {
        if self.may_be_over(epoch, losses) {
            self.section = None;
        }
    }

    /// Whether a line with this epoch may follow the evaluation: its results have come, its heading names an
    /// earlier epoch, or the losses are called as the last one of the training.
    pub(super) fn may_be_over(&self, epoch: f64, losses: &[Loss]) -> bool {
        let (name, _) = &self.last;
        self.has_results
            || self.epoch.is_some_and(|own| epoch > own)
            || losses.iter().any(|loss| loss.name == *name)
    }

    /// Whether the section began with the line before.
    pub(super) fn is_at_start(&self) -> bool {
        let is_empty = self.reported == (false, false) && self.held.is_none();
        self.section.is_some() && self.lines == 0 && is_empty
    }

    /// Whether a loss on held-out data was reported without a step.
    pub(super) fn has_held_out(&self) -> bool {
        self.reported.1
    }

    /// Whether its heading had a step.
    pub(super) fn has_step(&self) -> bool {
        self.counters.as_ref().is_some_and(|counters| counters.step.is_some())
    }

    /// Whether a line belongs to it or to a section.
    pub(super) fn is_inside(&self) -> bool {
        self.counters.is_some() || self.section.is_some()
    }

    /// Whether its heading had counters.
    pub(super) fn has_counters(&self) -> bool {
        self.counters.is_some()
    }

    /// Whether the following lines may belong to it.
    pub(super) fn is_active(&self) -> bool {
        let reported = self.reported.0 || self.reported.1;
        reported || self.held.is_some() || self.counters.is_some() || self.section.is_some()
    }

    /// Takes a line of any kind. Returns the parts that were held, if no main loss can follow them.
    /// `is_item`: the line is a key with a value, as the lines of a block are.
    pub(super) fn line(&mut self, is_item: bool) -> Option<Observation> {
        self.lines += 1;
        if self.lines > MAX_LINES {
            return self.end();
        }
        if is_item {
            return None;
        }
        self.section = self.section.filter(|section| *section != Section::Summary);
        if self.counters.is_none() && self.section.is_none() {
            self.reported = (false, false);
        }
        self.held.take()
    }

    /// Takes the losses of a line without a step; `is_item` as for [`Block::line`]. Returns whether
    /// to report what is then in `draft`: these losses, or earlier ones.
    pub(super) fn losses(&mut self, draft: &mut Draft, is_item: bool) -> bool {
        if self.section == Some(Section::Summary) {
            if is_item {
                return false;
            }
            self.section = None;
        }
        if draft.found.losses.iter().all(|loss| loss.span == Span::Run) {
            return true;
        }
        if self.section == Some(Section::HeldOut) {
            draft.found.losses.iter_mut().for_each(hold_out);
        }
        if self.counters.is_some() {
            let names = draft.found.losses.iter().map(|loss| &loss.name);
            if names.clone().any(|name| self.names.contains(name)) {
                // The next report, without a heading of its own.
                self.counters = None;
                self.reported = (false, false);
            } else {
                self.names.extend(names.cloned());
                self.names.truncate(MAX_NAMES);
            }
        }
        if !is_item && self.counters.is_none() && self.section.is_none() {
            self.reported = (false, false);
        }
        let (reported, bounded) = (self.reported, self.counters.is_some());
        draft.retain(|loss| {
            let done = if loss.phase == Phase::Train { reported.0 } else { reported.1 };
            !(done && (bounded || rank(&loss.name) >= PART))
        });
        let Some(first) = draft.found.losses.first() else { return false };
        let is_whole = self.parts >= MIN_PARTS && is_whole_cost(&first.name);
        let is_part = rank(&first.name) >= PART && !is_whole;
        if let Some(counters) = &self.counters {
            let found = &mut draft.found;
            (found.step, found.step_in_epoch) = (counters.step, counters.step_in_epoch);
            found.total_steps = counters.total_steps;
            found.epoch = counters.epoch.or(found.epoch);
            found.total_epochs = counters.total_epochs.or(found.total_epochs);
            found.batch_seconds = counters.batch_seconds;
        }
        if is_part && is_item {
            return self.hold(&mut draft.found);
        }
        (self.held, self.parts) = (None, 0);
        self.keep(&draft.found);
        self.reported.0 |= draft.found.losses.iter().any(|loss| loss.phase == Phase::Train);
        self.reported.1 |= draft.found.losses.iter().any(|loss| loss.phase != Phase::Train);
        true
    }

    /// Keeps the first loss of the training in `found`.
    #[inline]
    pub(super) fn keep(&mut self, found: &Observation) {
        if let Some(loss) = found.losses.iter().find(|loss| loss.phase == Phase::Train) {
            let (name, value) = &mut self.last;
            if *name != loss.name {
                name.clone_from(&loss.name);
            }
            *value = loss.value;
        }
    }

    /// Whether the losses of a line without counters are only the parts of the last main loss:
    /// `loss1: 2, loss2: 3` below `loss: 5`. Names alone do not show it, so their sum has to.
    pub(super) fn are_parts(&self, found: &Observation) -> bool {
        let (name, whole) = &self.last;
        let sum: f64 = found.losses.iter().map(|loss| loss.value).sum();
        let is_part = |name: &str| {
            let is_numbered = name.ends_with(|c: char| c.is_ascii_digit());
            is_numbered || rank(name) >= PART
        };
        found.losses.len() > 1
            && (sum - whole).abs() <= whole.abs() * ROUNDED
            && !name.is_empty()
            && !is_part(name)
            && found.losses.iter().all(|loss| loss.phase == Phase::Train && is_part(&loss.name))
    }

    /// Holds the parts in `found`. Returns whether it then has earlier ones, which are complete.
    fn hold(&mut self, found: &mut Observation) -> bool {
        let Some(held) = &mut self.held else {
            self.held = Some(std::mem::take(found));
            self.parts = 1;
            return false;
        };
        let same = |name: &str| held.losses.iter().any(|loss| loss.name == name);
        let again = found.losses.first().is_some_and(|loss| same(&loss.name));
        self.parts = if again { 1 } else { self.parts + 1 };
        if again {
            std::mem::swap(held, found);
        } else if !held.losses.iter().any(|loss| loss.phase != Phase::Train) {
            // Beside a part of the training loss, one on held-out data is another value.
            held.losses.extend(found.losses.drain(..).filter(|loss| loss.phase != Phase::Train));
        }
        again
    }
}

/// Minimum number of parts above a cost that is their whole.
const MIN_PARTS: usize = 2;

/// How far the sum of printed parts may be from the printed whole, as a share of it.
const ROUNDED: f64 = 1e-3;

/// Makes a loss one on held-out data, unless it says that it is of the training.
pub(super) fn hold_out(loss: &mut Loss) {
    if loss.phase == Phase::Train && !loss.name.to_ascii_lowercase().contains("train") {
        (loss.phase, loss.span) = (Phase::Validation, Span::Epoch);
    }
}

/// Maximum number of names that are remembered.
const MAX_NAMES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn report(block: &mut Block, name: &str) -> Option<String> {
        let mut draft = Draft::default();
        draft.push(name, Phase::Train, Span::Step, 1.0);
        let reported = block.losses(&mut draft, true);
        reported.then(|| draft.found.losses.iter().map(|loss| loss.name.clone()).collect())
    }

    #[test]
    fn main_loss_of_a_block_is_reported_once() {
        let mut block = Block::default();
        let heading = Observation { step: Some(5), ..Observation::default() };
        assert_eq!(block.open(&heading, false), None);
        assert_eq!(report(&mut block, "box_loss"), None);
        assert_eq!(report(&mut block, "loss"), Some("loss".to_owned()));
        assert_eq!(report(&mut block, "cls_loss"), None);
        assert_eq!(block.open(&heading, false), None);
        assert_eq!(report(&mut block, "box_loss"), None);
        let held = block.close().unwrap();
        assert_eq!((held.step, held.losses[0].name.as_str()), (Some(5), "box_loss"));
    }

    #[test]
    fn parts_are_those_that_sum_up_to_the_whole() {
        let found = |losses: &[(&str, f64)]| {
            let mut draft = Draft::default();
            for (name, value) in losses {
                draft.push(name, Phase::Train, Span::Step, *value);
            }
            draft.found
        };
        let mut block = Block::default();
        assert!(!block.are_parts(&found(&[("loss1", 0.0), ("loss2", 0.0)])));
        block.keep(&found(&[("loss", 5.0)]));
        block.keep(&found(&[]));
        for parts in [[("loss1", 2.0), ("loss2", 3.001)], [("box_loss", 1.0), ("cls_loss", 4.0)]] {
            assert!(block.are_parts(&found(&parts)), "{parts:?}");
        }
        for other in [
            [("loss1", 2.0), ("loss2", 2.5)].as_slice(),
            &[("loss", 2.0), ("aux_loss", 3.0)],
            &[("loss1", 5.0)],
        ] {
            assert!(!block.are_parts(&found(other)), "{other:?}");
        }
        // A part is not the whole of others.
        for name in ["loss1", "box_loss"] {
            block.keep(&found(&[(name, 5.0)]));
            assert!(!block.are_parts(&found(&[("loss1", 2.0), ("loss2", 3.0)])), "{name}");
        }
    }

    #[test]
    fn whole_cost_is_the_main_loss_below_two_parts() {
        let mut block = Block::default();
        assert_eq!(report(&mut block, "box_loss"), None);
        assert_eq!(report(&mut block, "total_cost"), None);
        assert_eq!(block.line(false).unwrap().losses[0].name, "box_loss");
        assert_eq!(report(&mut block, "box_loss"), None);
        assert_eq!(report(&mut block, "cls_loss"), None);
        assert_eq!(report(&mut block, "total_cost"), Some("total_cost".to_owned()));
    }

    #[test]
    fn parts_without_a_main_loss_are_reported() {
        let mut block = Block::default();
        assert_eq!(report(&mut block, "policy_loss"), None);
        assert_eq!(report(&mut block, "value_loss"), None);
        assert_eq!(report(&mut block, "policy_loss"), Some("policy_loss".to_owned()));
        assert!(block.line(true).is_none());
        assert_eq!(block.line(false).unwrap().losses[0].name, "policy_loss");
    }
}
