//! `MXNet` with `GluonTS`, RETURNN, brain.js, Burn, MACE, scripts of spaCy and of Informer.

use paceline_lines::observation::{Loss, Observation, Phase, Span};
use paceline_lines::scan;
use paceline_lines::terminal::End;

use super::draft::Draft;
use super::keys::{Field, Keys};
use super::shape::Shape;
use super::table::Table;
use super::{Grammar, Reading};

/// The grammars of this family.
pub(super) fn grammars() -> Vec<Box<dyn Grammar>> {
    vec![
        Box::new(MxNet::new()),
        Box::new(Returnn::default()),
        Box::new(Spacy),
        Box::new(informer()),
        Box::new(brain()),
        Box::new(burn()),
        Box::new(mace()),
    ]
}

/// `Epoch[1] Batch [70]⇥Speed: 1.08 samples/sec⇥cross-entropy=2.3`, and the lines at the end of an
/// epoch.
#[derive(Debug)]
struct MxNet {
    keys: Keys,
    batch: [Shape; 2],
    end: Shape,
}

impl MxNet {
    fn new() -> Self {
        let batch = [
            Shape::new("Epoch[{epoch}] Batch [{batch}] Speed: {_} samples/sec"),
            Shape::new("Epoch[{epoch}] Batch [{_}-{batch}] Speed: {_} samples/sec"),
        ];
        Self { keys: Keys::default(), batch, end: Shape::new("Epoch[{epoch}] ") }
    }
}

impl Grammar for MxNet {
    fn name(&self) -> &'static str {
        "mxnet"
    }

    fn starts(&self, byte: u8) -> bool {
        byte == b'E'
    }

    fn read(&mut self, line: &str, _: End, draft: &mut Draft) -> Reading {
        if let Some(rest) = self.batch.iter().find_map(|shape| shape.read(line, draft)) {
            for (name, value) in metrics(rest) {
                if is_loss(&mut self.keys, name) {
                    draft.push(name, Phase::Train, Span::Interval, value);
                }
            }
            return Reading::Says;
        }
        let Some(rest) = self.end.read(line, draft) else { return Reading::Foreign };
        if let Some((name, phase, value)) = rest.strip_prefix(EVALUATION).and_then(evaluated) {
            draft.push(name, phase, Span::Epoch, value);
            return Reading::Says;
        }
        for (name, value) in metrics(rest) {
            let (phase, metric) = match name.split_once('-') {
                Some(("Train", metric)) => (Phase::Train, metric),
                Some(("Validation", metric)) => (Phase::Validation, metric),
                _ => continue,
            };
            if is_loss(&mut self.keys, metric) {
                draft.push(name, phase, Span::Epoch, value);
            }
        }
        if !draft.found.losses.is_empty() {
            return Reading::Says;
        }
        draft.clear();
        Reading::Foreign
    }
}

/// brain.js calls the loss an error.
fn brain() -> Table {
    let shape = Shape::new("iterations: {step}, training error: {loss}");
    Table::new("brain.js", [shape.train("training error", Span::Step)])
}

/// Burn's summary of an iteration: the mean of the epoch so far, and the loss of the batch.
fn burn() -> Table {
    // The dash may have passed for the end of a prefix.
    let shapes = [
        Shape::new("- Train Loss: epoch {_} - batch {loss}").train("Loss", Span::Step),
        Shape::new("Train Loss: epoch {_} - batch {loss}").train("Loss", Span::Step),
        Shape::new("- Valid Loss: epoch {loss} - batch {_}").validation("Loss"),
        Shape::new("Valid Loss: epoch {loss} - batch {_}").validation("Loss"),
    ];
    Table::new("burn", shapes)
}

/// MACE prints errors on the validation set alone.
fn mace() -> Table {
    let shapes = [
        Shape::new("Epoch {epoch}: head: {..}, loss={loss}, RMSE_E_per_atom={_}"),
        Shape::new("Epoch {epoch}: loss={loss}, RMSE_E_per_atom={_}"),
        Shape::new("Initial: head: {..}, loss={loss}, RMSE_E_per_atom={_}"),
        Shape::new("Initial: loss={loss}, RMSE_E_per_atom={_}"),
    ];
    Table::new("mace", shapes.map(|shape| shape.validation("loss")))
}

/// The time of a step, below its losses.
fn informer() -> Table {
    Table::new("informer", [Shape::new("speed: {s}s/iter; left time: {_}s")])
}

/// `Losses {'ner': 12.5}`: the loss of each component.
#[derive(Debug)]
struct Spacy;

impl Grammar for Spacy {
    fn name(&self) -> &'static str {
        "spacy"
    }

    fn starts(&self, byte: u8) -> bool {
        matches!(byte, b'L' | b'l')
    }

    fn read(&mut self, line: &str, _: End, draft: &mut Draft) -> Reading {
        let rest = line.strip_prefix("Losses").or_else(|| line.strip_prefix("losses"));
        let rest = rest.map(|rest| rest.trim_start_matches([':', ' ']));
        let Some(rest) = rest.and_then(|rest| rest.strip_prefix("{'")) else {
            return Reading::Foreign;
        };
        let inside = rest.split('}').next().unwrap_or_default();
        // A pipeline has a few components; further ones are ignored.
        for entry in scan::listed(inside).take(16) {
            if let Some((name, value)) = entry.split_once("':")
                && let Some(value) = scan::whole(value)
            {
                draft.push(name.trim_start_matches('\''), Phase::Train, Span::Step, value);
            }
        }
        if draft.found.losses.is_empty() { Reading::Foreign } else { Reading::Says }
    }
}

/// Where `GluonTS` names the mean of an epoch, also that of the training.
const EVALUATION: &str = "Evaluation metric '";

/// The loss of the two that `GluonTS` names so, and its data.
fn evaluated(text: &str) -> Option<(&str, Phase, f64)> {
    let (name, value) = text.split_once("'=")?;
    let phase = match name {
        "epoch_loss" => Phase::Train,
        "validation_epoch_loss" => Phase::Validation,
        _ => return None,
    };
    Some((name, phase, scan::whole(value)?))
}

fn metrics(text: &str) -> impl Iterator<Item = (&str, f64)> {
    text.split_whitespace().take(16).filter_map(|field| {
        let (name, value) = field.split_once('=')?;
        Some((name, scan::whole(value.trim_end_matches(','))?))
    })
}

fn is_loss(keys: &mut Keys, name: &str) -> bool {
    let known =
        ["ce", "ctc", "cross-entropy", "mse", "rmse", "mae", "nll", "nll-loss", "kl", "bce"];
    known.contains(&name) || matches!(keys.field(name), Field::Loss { .. })
}

/// `ep 55 train, step 1347, ce 0.324, fer 0.9, 0.855 sec/step, exp. remaining 0:03:45`. Earlier versions:
/// `train epoch 55, batch 1347, cost:output 0.324, elapsed 0:20:00`.
#[derive(Debug, Default)]
struct Returnn {
    keys: Keys,
}

impl Grammar for Returnn {
    fn name(&self) -> &'static str {
        "returnn"
    }

    fn starts(&self, byte: u8) -> bool {
        matches!(byte, b'd' | b'e' | b'p' | b't')
    }

    fn read(&mut self, line: &str, _: End, draft: &mut Draft) -> Reading {
        Reading::from_found(self.line(line), draft, Reading::Foreign)
    }
}

impl Returnn {
    fn line(&mut self, line: &str) -> Option<Observation> {
        let (data, epoch, rest) = if let Some(rest) = line.strip_prefix("ep ") {
            let (epoch, rest) = scan::count(rest)?;
            let (data, rest) = rest.strip_prefix(' ')?.split_once(", step ")?;
            (data, epoch, rest)
        } else {
            let data = DATA.iter().find(|data| line.starts_with(**data))?;
            let rest = line.get(data.len()..)?.strip_prefix(" epoch ")?;
            let (epoch, rest) = scan::count(rest)?;
            let steps = rest.strip_prefix(", batch ").or_else(|| rest.strip_prefix(", step "));
            (*data, epoch, steps?)
        };
        let (step, rest) = scan::count(rest)?;
        let trains = ["train", "pretrain"].iter().any(|name| data.starts_with(name));
        let phase = if trains { Phase::Train } else { Phase::Validation };
        let mut found = Observation {
            step: Some(step),
            step_in_epoch: true,
            epoch: u32::try_from(epoch).ok().map(f64::from),
            ..Observation::default()
        };
        for field in scan::listed(rest).take(32) {
            if let Some(seconds) = field.strip_suffix(" sec/step").and_then(scan::whole) {
                found.batch_seconds = Some(seconds).filter(|seconds| *seconds > 0.0);
            } else if let Some((name, value)) = field.split_once(' ')
                && (name.starts_with("cost:") || is_loss(&mut self.keys, name))
                && let Some(value) = scan::whole(value)
            {
                let name = name.to_owned();
                found.losses.push(Loss { name, phase, span: Span::Step, value });
            }
        }
        if phase != Phase::Train {
            // Steps through other data are not steps of the training.
            (found.step, found.step_in_epoch, found.batch_seconds) = (None, false, None);
        }
        (!found.losses.is_empty()).then_some(found)
    }
}

/// The data before the epoch.
const DATA: [&str; 4] = ["train", "pretrain", "dev", "eval"];

#[cfg(test)]
mod tests;
