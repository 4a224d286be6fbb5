//! What the keys of dicts and of `key: value` lines say.

use super::draft::Draft;
use crate::names::{Meaning, meaning};
use crate::number::floor;
use crate::observation::{Loss, Phase, Span};

/// What stands under a key.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Field {
    Loss {
        phase: Phase,
        span: Option<Span>,
    },
    /// The time of a batch in units of which a second has so many.
    BatchTime(f64),
    BatchRate,
    Epoch,
    Epochs,
    Step,
    Batch,
    Steps,
    At,
    Rank,
    /// Nothing that is looked for.
    #[default]
    Other,
}

/// Losses of a line beyond these are left out.
const MOST: usize = 16;
/// A longer key is not looked at.
const LONGEST: usize = 80;
/// So many keys are remembered.
const REMEMBERED: usize = 64;

/// Remembers what keys say: a program prints the same ones, in the same order, all the time.
#[derive(Debug, Default)]
pub(super) struct Keys {
    known: Vec<(String, Field)>,
    /// Where the key is that followed the one before, the last time.
    next: usize,
}

impl Keys {
    /// What stands under `key`.
    pub(super) fn field(&mut self, key: &str) -> Field {
        if let Some((known, field)) = self.known.get(self.next)
            && known == key
        {
            self.next += 1;
            return *field;
        }
        if let Some(at) = self.known.iter().position(|(known, _)| known == key) {
            self.next = at + 1;
            return self.known.get(at).map_or(Field::Other, |(_, field)| *field);
        }
        let field = if key.len() > LONGEST { Field::Other } else { field(key) };
        if self.known.len() < REMEMBERED && key.len() <= LONGEST {
            self.known.push((key.to_owned(), field));
            self.next = self.known.len();
        }
        field
    }

    /// Puts `value`, which stands under `key`, into `draft`.
    pub(super) fn put(&mut self, key: &str, value: f64, draft: &mut Draft) {
        put(self.field(key), key, value, draft);
    }

    /// Sets the span of the training losses whose names leave it open.
    pub(super) fn widen(&mut self, losses: &mut [Loss], to: Span) {
        for loss in losses.iter_mut().filter(|loss| loss.phase == Phase::Train) {
            if matches!(self.field(&loss.name), Field::Loss { span: None, .. }) {
                loss.span = to;
            }
        }
    }
}

/// Puts `value`, which stands under `key`, into `draft`.
pub(super) fn put(field: Field, key: &str, value: f64, draft: &mut Draft) {
    let count = || floor(value);
    let positive = Some(value).filter(|value| *value > 0.0 && value.is_finite());
    let found = &mut draft.found;
    match field {
        Field::Loss { phase, span } => {
            if found.losses.len() < MOST {
                draft.push(key, phase, span.unwrap_or(Span::Step), value);
            }
        }
        Field::BatchTime(parts) => found.batch_seconds = positive.map(|value| value / parts),
        Field::BatchRate => found.batch_seconds = positive.map(|value| 1.0 / value),
        Field::Epoch => found.epoch = Some(value).filter(|epoch| epoch.is_finite()),
        Field::Epochs => found.total_epochs = count(),
        Field::Step => found.step = count(),
        Field::Batch if found.step.is_some() && !found.step_in_epoch => {}
        Field::Batch => {
            found.step = count();
            found.step_in_epoch = found.step.is_some();
        }
        Field::Steps => found.total_steps = count(),
        Field::At => found.at = unix(value).or(found.at),
        Field::Rank => found.rank = count().and_then(|rank| u32::try_from(rank).ok()),
        Field::Other => {}
    }
}

/// Unix seconds from a number of seconds or milliseconds that can be nothing else.
pub(super) fn unix(value: f64) -> Option<f64> {
    if (1e9..1e11).contains(&value) {
        Some(value)
    } else if (1e12..1e14).contains(&value) {
        Some(value / 1e3)
    } else {
        None
    }
}

/// Puts the loss that the job as a whole is judged by before its parts.
pub(super) fn main_loss_first(losses: &mut [Loss]) {
    if losses.len() > 1 {
        losses.sort_by_key(|loss| {
            let name = loss.name.rsplit('/').next().unwrap_or_default();
            let is_main = ["loss", "train_loss", "training_loss", "total_loss", "lm loss"];
            let is_main = is_main.iter().any(|main| name.eq_ignore_ascii_case(main));
            (loss.phase, !is_main)
        });
    }
}

fn field(key: &str) -> Field {
    let last = key.rsplit(['/', '.']).next().unwrap_or_default().trim();
    let is = |names: &[&str]| names.iter().any(|name| last.eq_ignore_ascii_case(name));
    if is(&["rank", "global_rank"]) {
        return Field::Rank;
    }
    if is(&["time", "ts", "@timestamp", "asctime", "timestamp"]) {
        return Field::At;
    }
    // Whatever a total stands below, it is one.
    match meaning(last).filter(|meaning| is_total(*meaning)).or_else(|| meaning(key)) {
        Some(Meaning::Loss { phase, span }) => {
            Field::Loss { phase: phase.unwrap_or(Phase::Train), span }
        }
        Some(Meaning::BatchTime { per_second }) => Field::BatchTime(per_second),
        Some(Meaning::BatchRate) => Field::BatchRate,
        Some(Meaning::Epoch) => Field::Epoch,
        Some(Meaning::Step) => Field::Step,
        Some(Meaning::Batch) => Field::Batch,
        Some(Meaning::TotalSteps) => Field::Steps,
        Some(Meaning::TotalEpochs) => Field::Epochs,
        Some(Meaning::WallTime) => Field::At,
        None => Field::Other,
    }
}

fn is_total(meaning: Meaning) -> bool {
    matches!(meaning, Meaning::TotalSteps | Meaning::TotalEpochs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_remembered_and_no_more_than_so_many() {
        let mut keys = Keys::default();
        let loss = Field::Loss { phase: Phase::Train, span: None };
        for _ in 0..3 {
            assert_eq!(keys.field("loss"), loss);
            assert_eq!(keys.field("lr"), Field::Other);
            assert_eq!(keys.field("global_step"), Field::Step);
        }
        assert_eq!(keys.field("lr"), Field::Other);
        assert_eq!(keys.field("loss"), loss);
        assert_eq!(keys.known.len(), 3);
        for index in 0..1000 {
            assert_eq!(keys.field(&format!("key{index}x")), Field::Other);
        }
        assert_eq!(
            (keys.field("val_loss"), keys.known.len()),
            (Field::Loss { phase: Phase::Validation, span: Some(Span::Epoch) }, REMEMBERED)
        );
    }

    #[test]
    fn the_main_loss_comes_first() {
        let loss =
            |name: &str, phase| Loss { name: name.to_owned(), phase, span: Span::Step, value: 0.0 };
        let mut losses = vec![
            loss("val_loss", Phase::Validation),
            loss("cls_loss", Phase::Train),
            loss("train/loss", Phase::Train),
        ];
        main_loss_first(&mut losses);
        let names: Vec<_> = losses.iter().map(|loss| loss.name.as_str()).collect();
        assert_eq!(names, ["train/loss", "cls_loss", "val_loss"]);
    }
}
