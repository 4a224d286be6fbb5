//! Bars of tqdm and rich, also as Lightning and the Hugging Face trainer draw them.

mod bars;
mod counter;
mod desc;
mod frame;
mod loggable;
mod outer;
mod rich;
mod yolo;

use paceline_lines::number;
use paceline_lines::observation::{Loss, Observation, Phase, Span};
use paceline_lines::scan;
use paceline_lines::terminal::End;

use super::draft::Draft;
use super::key_value::KeyValue;
use super::keys::{Field, Keys, main_loss_first, put};
use super::{Grammar, Reading};
use bars::{Bars, Id};
use desc::Desc;
use frame::{Form, Frame, Unit};
use outer::Outer;

pub(super) use loggable::Loggable;
pub(super) use yolo::Yolo;

/// The bars of one program.
#[derive(Debug, Default)]
pub(super) struct Tqdm {
    keys: Keys,
    in_desc: KeyValue,
    bars: Bars,
    desc: Option<(String, Desc)>,
    /// The bar without a loss that counts the steps of the training.
    steps: Option<Id>,
    /// The same, at its first end and without an epoch: it may be one of a preparation.
    prepared: Option<Id>,
    /// The outer bar, which counts the epochs.
    outer: Option<Outer>,
    /// The last reported number of epochs.
    epochs: Option<u64>,
    before: Before,
    by: By,
    with_loss: bool,
    /// The step of the run that the frame prints beside its losses.
    step_of_run: Option<u64>,
    /// The epoch and the number of epochs that the frame prints beside its losses.
    epoch_beside: Option<(f64, u64)>,
    /// Such a step was the counter of the bar, so both count the same.
    alike: bool,
    /// How many steps the bar of the last frame has left, if it is of held-out data.
    left_of_evaluation: u64,
    /// A bar of rich was in epoch 0. The number after the slash is then the last epoch.
    from_zero: bool,
}

/// The program that draws the bars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    #[default]
    Tqdm,
    Rich,
    Lightning,
}

/// The kind of the previous frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Before {
    /// A complete frame.
    #[default]
    Frame,
    /// The same frame, incomplete.
    Unended,
    /// A blank one: the bar was erased.
    Blank,
}

/// A frame and the properties of its bar.
#[derive(Clone, Copy, Debug)]
struct Seen<'a> {
    frame: Frame<'a>,
    desc: Desc,
    /// The index of its bar.
    at: usize,
    /// Whether its bar counts epochs.
    of_epochs: bool,
    /// Whether it was redrawn because something else was printed.
    again: bool,
}

impl Grammar for Tqdm {
    fn name(&self) -> &'static str {
        match self.by {
            By::Tqdm => "tqdm",
            By::Rich => "rich",
            By::Lightning => "lightning",
        }
    }

    fn has_mark(&self) -> bool {
        true
    }

    fn is_of_bars(&self) -> bool {
        true
    }

    fn evaluates(&self) -> bool {
        self.left_of_evaluation > 0
    }

    fn read(&mut self, line: &str, end: End, draft: &mut Draft) -> Reading {
        if line.is_empty() {
            self.before = Before::Blank;
            return Reading::Foreign;
        }
        if end == End::Flush && !line.ends_with(']') {
            return Reading::Foreign;
        }
        // An object of a collector, whose text may be a frame.
        if line.starts_with("{\"") && line.ends_with('}') {
            return Reading::Foreign;
        }
        let Some(frame) = Frame::parse(line).or_else(|| rich::parse(line)) else {
            return Reading::Foreign;
        };
        let now = if end == End::Flush { Before::Unended } else { Before::Frame };
        let before = std::mem::replace(&mut self.before, now);
        let of_lightning = ["Sanity Checking", "Validation DataLoader"];
        if of_lightning.iter().any(|desc| frame.desc.starts_with(desc)) {
            self.by = By::Lightning;
        } else if frame.form == Form::Rich {
            self.by = self.by.max(By::Rich);
        }
        let (mut desc, is_known) = self.desc(&frame);
        self.losses(&frame, draft);
        // `Loss: 0.5, val loss: 0.25` describes the training, although it names other data.
        let names_other = desc.phase.is_some_and(|phase| phase != Phase::Train);
        if names_other && frame.desc.matches("oss").count() > 1 {
            let trains = |loss: &Loss| loss.phase == Phase::Train;
            let mut losses = draft.found.losses.iter();
            if losses.clone().any(trains) && losses.any(|loss| !trains(loss)) {
                desc.phase = Some(Phase::Train);
            }
        }
        let holds_out = desc.phase.is_some_and(|phase| phase != Phase::Train);
        let total = frame.total.filter(|_| holds_out);
        self.left_of_evaluation = total.unwrap_or_default().saturating_sub(frame.n);
        let (at, of_epochs) = self.bar(&frame, desc, is_known, before);
        if let Some(bar) = self.bars.get_mut(at) {
            let tells = !draft.found.losses.is_empty();
            bar.renew(&frame, desc.epoch.or(draft.below), end == End::Newline, tells);
        }
        // rich draws frames by the clock.
        let again = before != Before::Frame || frame.form == Form::Rich;
        let seen = Seen { frame, desc, at, of_epochs, again };
        let reading = self.frame(seen, draft);
        // A bar with the number of epochs may be another program's, which counts them.
        let has_epoch = desc.epoch.is_some() && !of_epochs;
        let is_usual = desc.epochs.is_none() || frame.form == Form::Rich;
        draft.found.epochs_from_zero = self.by == By::Lightning && has_epoch && is_usual;
        reading
    }
}

impl Tqdm {
    /// Completes the observation of a frame.
    fn frame(&mut self, seen: Seen<'_>, draft: &mut Draft) -> Reading {
        if draft.found.losses.is_empty() {
            return self.without_loss(seen, draft);
        }
        self.with_loss |= seen.desc.phase == Some(Phase::Train) && !seen.of_epochs;
        if self.with_losses(seen, draft).is_some() {
            return Reading::Says;
        }
        draft.clear();
        Reading::Known
    }

    /// The description of a bar, which is the same in most frames, and whether it is that of the last frame.
    fn desc(&mut self, frame: &Frame<'_>) -> (Desc, bool) {
        if let Some((known, desc)) = &self.desc
            && known == frame.desc
        {
            return (*desc, true);
        }
        let mut desc = Desc::parse(frame.desc);
        if frame.form == Form::Rich {
            self.from_zero |= desc.epoch.is_some_and(|epoch| epoch < 1.0);
            let last = desc.epochs.filter(|_| self.from_zero);
            desc.epochs = last.and_then(|last| last.checked_add(1)).or(desc.epochs);
        }
        self.desc = Some((frame.desc.to_owned(), desc));
        (desc, false)
    }

    /// The index of the bar of a frame, and whether it is an outer bar that counts epochs.
    /// `is_known`: its description is that of the last frame.
    fn bar(
        &mut self,
        frame: &Frame<'_>,
        desc: Desc,
        is_known: bool,
        before: Before,
    ) -> (usize, bool) {
        let counts = matches!(frame.unit, Unit::Steps | Unit::Samples);
        let trains = counts && desc.phase == Some(Phase::Train) && !desc.rehearsal;
        let guess = self.outer.as_ref().and_then(Outer::guess);
        let (at, is_new) = match self.bars.last(frame).filter(|_| is_known) {
            Some(at) => (at, false),
            None => self.bars.find(frame, trains, [self.steps, guess]),
        };
        if let (Some(epoch), Some(bar)) = (desc.epoch, self.bars.get_mut(at)) {
            bar.compare(epoch, frame.n, desc.epochs.is_some() && desc.epochs == frame.total);
        }
        if desc.of_epochs || frame.unit == Unit::Epochs {
            self.outer = Some(Outer::said(frame));
            return (at, true);
        }
        let Some(bar) = self.bars.get_mut(at).filter(|bar| bar.trains) else {
            return (at, false);
        };
        let (id, restarts) = (bar.id, frame.n < bar.counter.n());
        match &mut self.outer {
            Some(outer) if outer.guess() == Some(id) => {
                if outer.goes_on(frame) {
                    return (at, true);
                }
                // The bar counts steps after all.
                (self.outer, self.steps) = (None, Some(id));
            }
            Some(outer) => {
                let is_around = outer.is_around(frame, restarts);
                if !is_around {
                    self.outer = None;
                }
            }
            None if is_new && frame.n == 0 && before != Before::Blank => {
                if let Some(around) = self.bars.at_start(id, frame.total) {
                    (self.outer, self.steps) = (Some(Outer::guessed(around)), None);
                }
            }
            None => {}
        }
        (at, false)
    }

    /// The epoch of a bar of steps, and the number of epochs.
    fn epoch(&self, desc: Desc) -> (Option<f64>, Option<u64>) {
        let outer = self.outer.as_ref();
        let beside = self.epoch_beside;
        let epoch = desc.epoch.or_else(|| outer.and_then(Outer::epoch));
        let epochs = desc.epochs.or_else(|| outer.and_then(Outer::epochs));
        (epoch.or(beside.map(|(epoch, _)| epoch)), epochs.or(beside.map(|(_, epochs)| epochs)))
    }

    fn losses(&mut self, frame: &Frame<'_>, draft: &mut Draft) {
        (self.step_of_run, self.epoch_beside) = (None, None);
        if frame.form == Form::Rich {
            rich::pairs(frame.postfix).for_each(|(key, value)| self.pair(key, value, draft));
        } else {
            for pair in scan::listed(frame.postfix) {
                if let Some((key, value)) = pair.split_once(['=', ':']) {
                    self.pair(key.trim_ascii(), value, draft);
                }
            }
        }
        let losses = &mut draft.found.losses;
        if losses.is_empty() {
            let text = if frame.postfix.is_empty() { frame.desc } else { frame.postfix };
            *losses = self.in_desc.losses(text);
            self.keys.widen(losses, Span::Step);
        }
        // What a program shows before its first step.
        if frame.n == 0 && losses.iter().all(|loss| loss.value == 0.0) {
            losses.clear();
        }
        main_loss_first(losses);
    }

    fn pair(&mut self, key: &str, value: &str, draft: &mut Draft) {
        if key == "v_num" {
            self.by = By::Lightning;
        }
        let field = self.keys.field(key);
        if field == Field::GlobalStep || key == "env_step" {
            // A large one is rounded: `1.23e+5`.
            let exact = Some(value).filter(|value| !value.contains(['e', 'E']));
            self.step_of_run = exact.and_then(scan::whole).and_then(number::whole);
        }
        // Without a total it may be that of a bar over all epochs.
        if field == Field::Epoch
            && let Some((epoch, rest)) = scan::count(value.trim_ascii())
            && let Some((epochs, "")) = rest.strip_prefix('/').and_then(scan::count)
        {
            self.epoch_beside = u32::try_from(epoch).ok().map(|epoch| (epoch.into(), epochs));
        }
        if let (Field::Loss { .. }, Some(value)) = (field, scan::whole(value)) {
            put(field, key, value, draft);
        }
    }

    fn without_loss(&mut self, seen: Seen<'_>, draft: &mut Draft) -> Reading {
        let Seen { frame, desc, at, of_epochs, again } = seen;
        let (epoch, epochs) = self.epoch(desc);
        let Some(bar) = self.bars.get_mut(at) else { return Reading::Known };
        bar.counter.frame(frame.n, frame.total, None, again);
        let before = bar.n;
        if of_epochs {
            bar.n = Some(frame.n);
            draft.found.total_epochs = epochs;
            let is_new = std::mem::replace(&mut self.epochs, epochs) != epochs;
            return if is_new { Reading::Says } else { Reading::Known };
        }
        let counts = frame.unit == Unit::Steps && desc.phase == Some(Phase::Train);
        // `Epoch: 1/3` and `Epoch ... : 1/3` are outer bars.
        let name = frame.desc.trim_end_matches(|c: char| !c.is_alphanumeric());
        let outer = name.eq_ignore_ascii_case("epoch");
        if self.with_loss || !counts || outer {
            return Reading::Known;
        }
        // A bar with the number of its epoch replaces one of a preparation, which is over and has none.
        let replaces = desc.epoch.is_some() && frame.n == 0 && self.prepared.take().is_some();
        if replaces {
            self.steps = Some(bar.id);
        }
        if *self.steps.get_or_insert(bar.id) != bar.id {
            return Reading::Known;
        }
        let is_over = desc.epoch.is_none() && !bar.restarted && frame.total == Some(frame.n);
        self.prepared = Some(bar.id).filter(|_| is_over);
        if before.is_some_and(|before| frame.n < before) {
            // An evaluation with the same number of steps, unless this bar was at its end.
            if before < frame.total && self.outer.is_none() {
                return Reading::Known;
            }
            bar.restarted = true;
        }
        bar.n = Some(frame.n);
        let is_later = std::mem::replace(&mut bar.epoch, desc.epoch) < desc.epoch;
        let moved = before != Some(frame.n) || (before.is_some() && is_later);
        draft.found = Observation {
            step: Some(frame.n),
            step_in_epoch: (epoch.is_some() && !bar.of_epochs) || bar.restarted,
            total_steps: frame.total,
            epoch,
            total_epochs: epochs,
            batch_seconds: frame.seconds,
            ..Observation::default()
        };
        if draft.found.step_in_epoch {
            draft.counted_epoch = bar.counter.epoch();
        }
        Reading::Bar { moved }
    }

    /// Completes `draft` with the step in the description of a bar that moves once in so many steps.
    fn with_steps_of_tick(&mut self, seen: Seen<'_>, steps: u32, draft: &mut Draft) -> Option<()> {
        let Seen { frame, desc, at, .. } = seen;
        let (epoch, epochs) = self.epoch(desc);
        let ((step, of), bar) = (desc.step_of?, self.bars.get_mut(at)?);
        let inner = Some((desc.epoch?.to_bits(), step));
        if std::mem::replace(&mut bar.inner, inner) == inner {
            return None;
        }
        let found = &mut draft.found;
        (found.epoch, found.total_epochs) = (epoch, epochs);
        (found.step, found.step_in_epoch, found.total_steps) = (Some(step), true, Some(of));
        let seconds = frame.seconds.map(|seconds| seconds / f64::from(steps));
        found.batch_seconds = seconds.filter(|seconds| seconds.is_finite());
        Some(())
    }

    /// Completes `draft`, which has the losses of the frame. `None` if nothing is new.
    fn with_losses(&mut self, seen: Seen<'_>, draft: &mut Draft) -> Option<()> {
        let Seen { frame, desc, at, of_epochs, again } = seen;
        let (epoch, epochs) = self.epoch(desc);
        let bar = self.bars.get_mut(at)?;
        let phase = desc.phase.unwrap_or(Phase::Train);
        if desc.rehearsal || (phase != Phase::Train && frame.total != Some(frame.n)) {
            return None;
        }
        let is_step = |loss: &Loss| loss.phase == Phase::Train && loss.span != Span::Epoch;
        // Any of several losses may be the one that changes.
        if let Some(steps) =
            desc.step_of.and_then(|(_, of)| ticks(&frame, of)).filter(|_| phase == Phase::Train)
        {
            return self.with_steps_of_tick(seen, steps, draft);
        }
        // A bar of another process names the same step.
        if phase == Phase::Train && bar.is_of_another(&frame, desc) {
            return None;
        }
        let losses = draft.found.losses.iter().filter(|loss| is_step(loss));
        let loss =
            losses.map(|loss| loss.value.to_bits()).reduce(|all, one| all.rotate_left(9) ^ one);
        let step = bar.counter.frame(frame.n, frame.total, loss, again);
        if phase != Phase::Train {
            bar.hold_out(desc.epoch);
        }
        draft.retain(|loss| {
            if is_step(loss) && phase == Phase::Train { step.is_some() } else { bar.is_new(loss) }
        });
        // Lightning draws each counter twice, first with the loss before it.
        let stands = loss.is_some()
            && !of_epochs
            && self.by != By::Lightning
            && bar.counter.has_moved_beyond_losses();
        let found = &mut draft.found;
        if found.losses.is_empty() && !stands {
            return None;
        }
        found.epoch = epoch;
        if phase != Phase::Train {
            // In the last frame, a mean covers all the data.
            for loss in &mut found.losses {
                (loss.phase, loss.span) = (phase, Span::Epoch);
            }
            return Some(());
        }
        found.total_epochs = epochs;
        let step = step.unwrap_or(frame.n);
        if of_epochs {
            found.epoch = u32::try_from(step).ok().map(f64::from);
            found.total_epochs = frame.total;
            found.losses.iter_mut().for_each(|loss| loss.span = Span::Epoch);
            return Some(());
        }
        found.step = Some(step);
        // Beside a counter of the epoch, a bar of another length counts those of the run.
        let is_around = desc.inner.is_some() && desc.inner != frame.total;
        let is_global = desc.of_steps || bar.of_epochs || is_around;
        found.step_in_epoch = !is_global || bar.counter.epoch().is_some();
        found.step_in_samples = frame.unit == Unit::Samples;
        found.total_steps = frame.total;
        // Without the length of an epoch, its counter alone gives no step of the run. A bar of Lightning counts
        // batches of held-out data, too.
        let global = self.step_of_run.filter(|step| {
            frame.total.is_none() || (self.by == By::Lightning && is_ahead(&frame, desc, *step))
        });
        if let Some(step) = global {
            found.step = Some(step);
            (found.step_in_epoch, found.step_in_samples, found.total_steps) = (false, false, None);
        }
        // After the last step, the rate includes the time of the validation.
        let of_steps = frame.unit == Unit::Steps && !bar.of_epochs;
        let is_last = frame.total.is_none_or(|total| frame.n >= total);
        let of_steps = of_steps && found.losses.iter().any(|loss| !is_last || is_step(loss));
        // The rate is that of the bar's own steps, of which one may be many of the run.
        let is_of_bar = match self.step_of_run.filter(|_| frame.total.is_none()) {
            None => true,
            Some(step) => {
                self.alike |= step.abs_diff(frame.n).saturating_mul(MAX_DRIFT) <= frame.n;
                self.alike
            }
        };
        found.batch_seconds = frame.seconds.filter(|_| of_steps && is_of_bar);
        if let Some((step, total)) = step_of_run(&frame, desc) {
            (found.step, found.step_in_epoch, found.total_steps) = (Some(step), false, total);
        }
        draft.counted_epoch = bar.counter.epoch();
        draft.found.of_unnamed_loop = frame.desc.is_empty() && !draft.says_train();
        Some(())
    }
}

/// The number of steps of an epoch of `of` steps in which a bar moves once, if it is more than one. Where they do not
/// fit evenly, it is 0.
fn ticks(frame: &Frame<'_>, of: u64) -> Option<u32> {
    let total = frame.total.filter(|total| (1..of).contains(total))?;
    let steps = if of.is_multiple_of(total) { of / total } else { 0 };
    u32::try_from(steps).ok()
}

/// One step in so many may be missing in one of two counters that count the same.
const MAX_DRIFT: u64 = 50;

/// Whether the description of a frame names held-out data.
pub(super) fn holds_out(frame: &str) -> bool {
    let before_bar = frame.split_once('|').or_else(|| frame.rsplit_once('['));
    let desc = before_bar.map_or(frame, |(desc, _)| desc);
    Desc::parse(desc).phase.is_some_and(|phase| phase != Phase::Train)
}

/// Whether a bar, which counts the batches of held-out data, too, is ahead of the steps of the run. It is far ahead where
/// several batches are a step.
fn is_ahead(frame: &Frame<'_>, desc: Desc, step: u64) -> bool {
    let passed = desc.epoch.and_then(number::whole).zip(frame.total);
    let place =
        passed.and_then(|(epochs, length)| epochs.checked_mul(length)?.checked_add(frame.n));
    place.is_some_and(|place| step < place && step >= place / 4 * 3)
}

/// The step of the run in the description of a bar of an epoch, and the total. It is certain only after the
/// first epoch, and where epoch and counter agree with it.
fn step_of_run(frame: &Frame<'_>, desc: Desc) -> Option<(u64, Option<u64>)> {
    let (step, length) = (desc.step?, frame.total?);
    let epoch = number::whole(desc.epoch?)?;
    let is_at = |passed: u64| {
        let place = passed.checked_mul(length).and_then(|done| done.checked_add(frame.n));
        place.is_some_and(|place| place.abs_diff(step) <= 1)
    };
    let agrees = is_at(epoch) || epoch.checked_sub(1).is_some_and(is_at);
    let total = desc.epochs.and_then(|epochs| epochs.checked_mul(length));
    (step > length && agrees).then_some((step, total))
}

#[cfg(test)]
mod tests;
