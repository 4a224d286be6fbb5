//! The meaning of keys in dicts and `key: value` lines.

use paceline_lines::names::{self, Meaning, meaning};
use paceline_lines::number::{floor, whole};
use paceline_lines::observation::{Elapsed, Loss, Phase, Span};
use paceline_lines::scan;

use super::draft::Draft;

/// The meaning of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Field {
    Loss {
        phase: Phase,
        span: Option<Span>,
    },
    /// The time of a batch; holds the number of its units per second.
    BatchTime(f64),
    BatchRate,
    Epoch,
    Epochs,
    Step,
    /// The step since the start of training, even beside another counter.
    GlobalStep,
    Batch,
    Steps,
    /// A step and the number of steps in one text: `5/90`.
    StepOf,
    /// The time of day, or the time of a batch beside that of its data.
    At,
    /// The time since the start of the training.
    Elapsed,
    /// The time for the data of a batch, or until the end of the training.
    BesideTime,
    Rank,
    /// Its text says which data the other values are of: `"mode": "val"`.
    Data,
    /// Whether the other values are of held-out data, if it has this value: `"is_train": false`.
    Flag(bool),
    /// Without a known meaning.
    #[default]
    Other,
}

/// Maximum number of losses of a line.
const MAX_LOSSES: usize = 16;
/// Maximum length of a key in bytes.
const MAX_LEN: usize = 80;
/// Maximum number of remembered keys.
const REMEMBERED: usize = 64;

/// Remembers the meaning of keys: a program prints the same keys in the same order all the time.
#[derive(Debug, Default)]
pub(super) struct Keys {
    known: Vec<(String, Field)>,
    /// Index of the key that followed the previous one last time.
    next: usize,
}

impl Keys {
    /// The meaning of `key`.
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
        let field = if key.len() > MAX_LEN { Field::Other } else { field(key) };
        if self.known.len() < REMEMBERED && key.len() <= MAX_LEN {
            self.known.push((key.to_owned(), field));
            self.next = self.known.len();
        }
        field
    }

    /// Writes the value of `key` into `draft`.
    pub(super) fn put(&mut self, key: &str, value: f64, draft: &mut Draft) {
        put(self.field(key), key, value, draft);
    }

    /// Sets the span of the training losses whose names do not give one.
    pub(super) fn widen(&mut self, losses: &mut [Loss], to: Span) {
        for loss in losses.iter_mut().filter(|loss| loss.phase == Phase::Train) {
            if matches!(self.field(&loss.name), Field::Loss { span: None, .. }) {
                loss.span = to;
            }
        }
    }
}

/// Writes the value of `key` into `draft`.
pub(super) fn put(field: Field, key: &str, value: f64, draft: &mut Draft) {
    let count = || floor(value);
    let positive = || Some(value).filter(|value| *value > 0.0 && value.is_finite());
    let found = &mut draft.found;
    match field {
        Field::Loss { phase, span } => {
            if found.losses.len() < MAX_LOSSES {
                draft.push(key, phase, span.unwrap_or(Span::Step), value);
            }
        }
        Field::BatchTime(parts) => found.batch_seconds = positive().map(|value| value / parts),
        Field::BatchRate => found.batch_seconds = positive().map(|value| 1.0 / value),
        Field::Epoch => found.epoch = Some(value).filter(|epoch| epoch.is_finite()),
        Field::Epochs => found.total_epochs = count(),
        // fairseq writes a fraction of an epoch under the name of a step.
        Field::Step | Field::GlobalStep => {
            let step = whole(value);
            let is_fraction = step.is_none() && value.fract() != 0.0;
            if !is_fraction && (field == Field::GlobalStep || !draft.global) {
                (found.step, found.step_in_epoch) = (step, false);
                draft.global |= field == Field::GlobalStep;
            }
        }
        Field::Batch if found.step.is_some() && !found.step_in_epoch => {}
        Field::Batch => {
            found.step = count();
            found.step_in_epoch = found.step.is_some();
        }
        Field::Steps => found.total_steps = count(),
        Field::At => match unix(value) {
            Some(at) => found.at = Some(at),
            None => draft.time = positive(),
        },
        Field::Elapsed => {
            found.elapsed = positive().map(|seconds| Elapsed { seconds, is_named: true });
        }
        Field::BesideTime => draft.beside_time = true,
        // A local rank is never higher than the global one.
        Field::Rank => {
            found.rank = found.rank.max(count().and_then(|rank| u32::try_from(rank).ok()));
        }
        Field::StepOf | Field::Data | Field::Flag(_) | Field::Other => {}
    }
}

/// Writes the text under `key` into `draft`: a counter and its total, such as `5/90`.
pub(super) fn put_text(field: Field, text: &str, draft: &mut Draft) {
    if field == Field::BesideTime {
        draft.beside_time = true;
        return;
    }
    if field == Field::Data {
        draft.data = draft.data.or_else(|| names::held_out_by(text));
        return;
    }
    if let Field::Flag(held_out) = field {
        let is_set = text.eq_ignore_ascii_case(if held_out { "true" } else { "false" });
        draft.data = draft.data.or(is_set.then_some(Phase::Validation));
        return;
    }
    let Some((count, rest)) = scan::count(text) else { return };
    let total = rest.trim_start().strip_prefix('/').map(str::trim_start).and_then(scan::count);
    let Some((total, "")) = total else { return };
    let found = &mut draft.found;
    if matches!(field, Field::Step | Field::GlobalStep | Field::StepOf) {
        (found.step, found.step_in_epoch) = (Some(count), false);
        found.total_steps = Some(total);
        draft.with_step = Some(total).filter(|_| field == Field::Step);
    } else if field == Field::Batch && found.step.is_none() {
        (found.step, found.step_in_epoch) = (Some(count), true);
        found.total_steps = Some(total);
    } else if field == Field::Epoch {
        found.epoch = u32::try_from(count).ok().map(f64::from);
        found.total_epochs = Some(total);
    }
}

/// Names of the number of batches of an epoch in dicts.
const LENGTHS: [&str; 4] = ["n_batches", "num_batches", "total_batches", "batches_per_epoch"];
/// The time of a batch in dicts, if that of its data stands beside it.
const TIME: &str = "dt";

/// Whether a key of a dict has a meaning only beside others.
pub(super) fn is_beside(key: &str) -> bool {
    key == TIME || LENGTHS.contains(&key)
}

/// Writes the value of such a key into `draft`. Returns whether it is one.
pub(super) fn put_beside(key: &str, value: f64, draft: &mut Draft) -> bool {
    if key == TIME {
        draft.time = Some(value).filter(|value| *value > 0.0 && value.is_finite());
    } else if LENGTHS.contains(&key) {
        draft.length = whole(value);
    } else {
        return false;
    }
    true
}

/// Unix seconds from a number that is clearly Unix seconds or milliseconds.
pub(super) fn unix(value: f64) -> Option<f64> {
    if (1e9..1e11).contains(&value) {
        Some(value)
    } else if (1e12..1e14).contains(&value) {
        Some(value / 1e3)
    } else {
        None
    }
}

/// Sorts the main loss before its parts.
#[inline]
pub(super) fn main_loss_first(losses: &mut [Loss]) {
    if losses.len() > 1 {
        losses.sort_by_key(|loss| (loss.phase, names::rank(&loss.name)));
    }
}

/// Names whose text says which data the other values are of, or which event a record is about.
const DATA: [&str; 17] = [
    "mode",
    "split",
    "data_split",
    "phase",
    "stage",
    "subset",
    "set",
    "partition",
    "dataset",
    "event",
    "event_type",
    "type",
    "kind",
    "msg",
    "message",
    "action",
    "loop",
];

/// Names of objects around the values of an event, which have no meaning of their own.
const AROUND: [&str; 9] = [
    "data/",
    "payload/",
    "fields/",
    "extra/",
    "attributes/",
    "progress/",
    "counters/",
    "metrics/",
    "misc/",
];

fn field(key: &str) -> Field {
    let field = plain(key);
    let inside = || AROUND.iter().find_map(|around| key.strip_prefix(around));
    if field == Field::Other { inside().map_or(field, plain) } else { field }
}

/// The meaning of a key as it is.
fn plain(key: &str) -> Field {
    let last = key.rsplit(['/', '.']).next().unwrap_or_default().trim();
    let is = |names: &[&str]| names.iter().any(|name| last.eq_ignore_ascii_case(name));
    if is(&["rank", "global_rank", "local_rank", "process_index"]) {
        return Field::Rank;
    }
    if is(&DATA) {
        return Field::Data;
    }
    if is(&["is_train", "is_training", "training", "train_mode"]) {
        return Field::Flag(false);
    }
    if is(&["is_val", "is_valid", "is_validation", "is_eval", "is_test"]) {
        return Field::Flag(true);
    }
    if is(&["time", "ts", "@timestamp", "asctime", "timestamp"]) {
        return Field::At;
    }
    // The time of a batch in programs built on the same detectors.
    if key.eq_ignore_ascii_case("timer") {
        return Field::BatchTime(1.0);
    }
    if is(&[
        "dt_data",
        "data_time",
        "data",
        "data_cost",
        "reader_cost",
        "loader_time",
        "eta",
        "eta_seconds",
    ]) {
        return Field::BesideTime;
    }
    if let Some((step, total)) = key.split_once('/')
        && meaning(step) == Some(Meaning::Step)
        && meaning(total) == Some(Meaning::TotalSteps)
    {
        return Field::StepOf;
    }
    // A total keeps its meaning under any prefix.
    match meaning(last).filter(|meaning| is_total(*meaning)).or_else(|| meaning(key)) {
        Some(Meaning::Loss { phase, span }) => {
            Field::Loss { phase: phase.unwrap_or(Phase::Train), span }
        }
        Some(Meaning::BatchTime { per_second }) => Field::BatchTime(per_second),
        Some(Meaning::BatchRate) => Field::BatchRate,
        Some(Meaning::Epoch) => Field::Epoch,
        Some(Meaning::Step) if names::is_global(key) => Field::GlobalStep,
        Some(Meaning::Step) => Field::Step,
        Some(Meaning::Batch) => Field::Batch,
        Some(Meaning::TotalSteps) => Field::Steps,
        Some(Meaning::TotalEpochs) => Field::Epochs,
        Some(Meaning::WallTime) => Field::At,
        Some(Meaning::Elapsed) => Field::Elapsed,
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
    fn keys_are_remembered_up_to_a_limit() {
        let mut keys = Keys::default();
        let loss = Field::Loss { phase: Phase::Train, span: None };
        for _ in 0..3 {
            assert_eq!(keys.field("loss"), loss);
            assert_eq!(keys.field("lr"), Field::Other);
            assert_eq!(keys.field("global_step"), Field::GlobalStep);
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
    fn main_loss_comes_first() {
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
