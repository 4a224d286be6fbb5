//! Bars of tqdm, also as Lightning and the Hugging Face trainer draw them.

mod counter;
mod desc;
mod frame;

use super::draft::Draft;
use super::key_value::KeyValue;
use super::keys::{Field, Keys, main_loss_first, put};
use super::{Grammar, Reading, scan};
use crate::observation::{Loss, Observation, Phase, Span};
use crate::terminal::End;
use counter::Counter;
use desc::Desc;
use frame::{Frame, Unit};

/// More bars than these are not told apart.
const MOST: usize = 8;

/// The bars of one program.
#[derive(Debug, Default)]
pub(super) struct Tqdm {
    keys: Keys,
    in_desc: KeyValue,
    bars: Vec<Bar>,
    desc: Option<(String, Desc)>,
    /// Which of them, without a loss, counts the steps of the training.
    steps: Option<Identity>,
    /// What follows is drawn again: the frame before was blank, or had not ended.
    cleared: bool,
    lightning: bool,
    with_loss: bool,
}

#[derive(Debug)]
struct Bar {
    identity: Identity,
    counter: Counter,
    /// The losses other than the step's own that it has shown, by name.
    others: Vec<(String, u64)>,
    n: Option<u64>,
    restarted: bool,
}

/// What stays the same between the frames of a bar, and of the same bar in the next epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    letters: String,
    total: Option<u64>,
}

impl Grammar for Tqdm {
    fn name(&self) -> &'static str {
        if self.lightning { "lightning" } else { "tqdm" }
    }

    fn is_of_bars(&self) -> bool {
        true
    }

    fn read(&mut self, line: &str, end: End, draft: &mut Draft) -> Reading {
        if line.is_empty() {
            self.cleared = true;
            return Reading::Foreign;
        }
        if end == End::Flush && !line.ends_with(']') {
            return Reading::Foreign;
        }
        let Some(frame) = Frame::parse(line) else { return Reading::Foreign };
        // The frame that follows one that had not ended is the same.
        let again = std::mem::replace(&mut self.cleared, end == End::Flush);
        let of_lightning = ["Sanity Checking", "Validation DataLoader"];
        self.lightning |= of_lightning.iter().any(|desc| frame.desc.starts_with(desc));
        let desc = self.desc(frame.desc);
        self.losses(&frame, draft);
        if draft.found.losses.is_empty() {
            return self.without_loss(&frame, desc, again, draft);
        }
        self.with_loss |= desc.phase == Some(Phase::Train);
        if self.with_losses(&frame, desc, again, draft).is_some() {
            return Reading::Says;
        }
        draft.clear();
        Reading::Known
    }
}

impl Tqdm {
    /// What the text before a bar says, which is the same in most frames.
    fn desc(&mut self, text: &str) -> Desc {
        match &self.desc {
            Some((known, desc)) if known == text => *desc,
            _ => {
                let desc = Desc::parse(text);
                self.desc = Some((text.to_owned(), desc));
                desc
            }
        }
    }

    fn losses(&mut self, frame: &Frame<'_>, draft: &mut Draft) {
        for pair in scan::listed(frame.postfix) {
            let Some((key, value)) = pair.split_once(['=', ':']) else { continue };
            self.lightning |= key == "v_num";
            let field = self.keys.field(key.trim_ascii());
            if let (Field::Loss { .. }, Some(value)) = (field, scan::whole(value)) {
                put(field, key.trim_ascii(), value, draft);
            }
        }
        let losses = &mut draft.found.losses;
        if losses.is_empty() {
            let text = if frame.postfix.is_empty() { frame.desc } else { frame.postfix };
            *losses = self.in_desc.losses(text);
            self.keys.widen(losses, Span::Step);
        }
        main_loss_first(losses);
    }

    fn without_loss(
        &mut self,
        frame: &Frame<'_>,
        desc: Desc,
        again: bool,
        draft: &mut Draft,
    ) -> Reading {
        let Some(bar) = bar(&mut self.bars, frame) else { return Reading::Known };
        bar.counter.frame(frame.n, frame.total, None, again);
        let before = bar.n;
        let counts = frame.unit == Unit::Steps && desc.phase == Some(Phase::Train);
        // `Epoch: 1/3` is the outer of two bars.
        let outer = desc.of_epochs || frame.desc.eq_ignore_ascii_case("epoch");
        if self.with_loss || !counts || outer {
            return Reading::Known;
        }
        if *self.steps.get_or_insert_with(|| bar.identity.clone()) != bar.identity {
            return Reading::Known;
        }
        if before.is_some_and(|before| frame.n < before) {
            // An evaluation with just as many steps, unless this one was at its end.
            if before < frame.total {
                return Reading::Known;
            }
            bar.restarted = true;
        }
        bar.n = Some(frame.n);
        draft.found = Observation {
            step: Some(frame.n),
            step_in_epoch: desc.epoch.is_some() || bar.restarted,
            total_steps: frame.total,
            epoch: desc.epoch,
            total_epochs: desc.epochs,
            batch_seconds: frame.seconds,
            ..Observation::default()
        };
        if draft.found.step_in_epoch {
            draft.counted_epoch = bar.counter.epoch();
        }
        Reading::Bar { moved: before != Some(frame.n) }
    }

    /// Completes `draft`, which has the losses of the frame; `None` if it says nothing new.
    fn with_losses(
        &mut self,
        frame: &Frame<'_>,
        desc: Desc,
        again: bool,
        draft: &mut Draft,
    ) -> Option<()> {
        let bar = bar(&mut self.bars, frame)?;
        let phase = desc.phase.unwrap_or(Phase::Train);
        if desc.rehearsal || (phase != Phase::Train && frame.total != Some(frame.n)) {
            return None;
        }
        let is_step = |loss: &Loss| loss.phase == Phase::Train && loss.span != Span::Epoch;
        let loss = draft.found.losses.iter().find(|loss| is_step(loss)).map(|loss| loss.value);
        let step = bar.counter.frame(frame.n, frame.total, loss, again);
        draft.retain(|loss| {
            if is_step(loss) && phase == Phase::Train { step.is_some() } else { bar.is_new(loss) }
        });
        let found = &mut draft.found;
        if found.losses.is_empty() {
            return None;
        }
        found.epoch = desc.epoch;
        if phase != Phase::Train {
            // In the last frame, a mean is that of all.
            for loss in &mut found.losses {
                (loss.phase, loss.span) = (phase, Span::Epoch);
            }
            return Some(());
        }
        found.total_epochs = desc.epochs;
        let step = step.unwrap_or(frame.n);
        if desc.of_epochs || frame.unit == Unit::Epochs {
            found.epoch = u32::try_from(step).ok().map(f64::from);
            found.total_epochs = frame.total;
            found.losses.iter_mut().for_each(|loss| loss.span = Span::Epoch);
            return Some(());
        }
        found.step = Some(step);
        found.step_in_epoch = true;
        found.step_in_samples = frame.unit == Unit::Samples;
        found.total_steps = frame.total;
        // After the last step, the time of the validation is counted in.
        let of_steps = frame.unit == Unit::Steps && found.losses.iter().any(is_step);
        found.batch_seconds = frame.seconds.filter(|_| of_steps);
        draft.counted_epoch = bar.counter.epoch();
        Some(())
    }
}

impl Bar {
    /// Whether a loss that stays in the bar for many frames was not there before.
    fn is_new(&mut self, loss: &Loss) -> bool {
        let bits = loss.value.to_bits();
        if let Some((_, before)) = self.others.iter_mut().find(|(name, _)| *name == loss.name) {
            return std::mem::replace(before, bits) != bits;
        }
        // A line has no more losses than these.
        if self.others.len() < 16 {
            self.others.push((loss.name.clone(), bits));
        }
        true
    }
}

/// The bar that `frame` is of.
fn bar<'a>(bars: &'a mut Vec<Bar>, frame: &Frame<'_>) -> Option<&'a mut Bar> {
    let letters = frame.desc.bytes().filter(u8::is_ascii_alphabetic);
    let same = |bar: &Bar| {
        bar.identity.total == frame.total && letters.clone().eq(bar.identity.letters.bytes())
    };
    let at = bars.iter().position(same).unwrap_or_else(|| {
        let letters = letters.clone().map(char::from).collect();
        let identity = Identity { letters, total: frame.total };
        if bars.len() >= MOST {
            bars.remove(0);
        }
        bars.push(Bar {
            identity,
            counter: Counter::default(),
            others: Vec::new(),
            n: None,
            restarted: false,
        });
        bars.len() - 1
    });
    bars.get_mut(at)
}

#[cfg(test)]
mod tests;
