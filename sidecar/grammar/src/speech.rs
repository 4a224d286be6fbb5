//! Speech: `ESPnet`, `WeNet`, Kaldi, the separation of sources.

use paceline_lines::observation::Span::{Epoch, Interval, Step};
use paceline_lines::observation::{Observation, Phase, Span};
use paceline_lines::scan;
use paceline_lines::terminal::End;

use super::draft::Draft;
use super::keys::{Field, Keys, main_loss_first};
use super::shape::Shape;
use super::table::Table;
use super::{Grammar, Reading};

/// The grammars of this family.
pub(super) fn grammars() -> Vec<Box<dyn Grammar>> {
    vec![
        Box::new(Espnet::default()),
        Box::new(wenet()),
        Box::new(Kaldi::new()),
        Box::new(separation()),
    ]
}

fn wenet() -> Table {
    let shapes = [
        Shape::new("TRAIN Batch {epoch}/{batch} loss {loss}").train("loss", Step),
        Shape::new("TRAIN | steps/sec {rate}| Batch {epoch}/{batch} loss {loss}")
            .train("loss", Step),
        // Its mean follows the last batch.
        Shape::new("CV Batch {_}/{_} loss {_}").known(),
        Shape::new("Epoch {epoch} CV info cv_loss {loss}").validation("cv_loss"),
    ];
    Table::new("wenet", shapes)
}

/// The separation of sources: the losses have the names of their data.
fn separation() -> Table {
    let shape = Shape::new("Epoch {epoch}: train={loss} valid={loss} best={_}");
    Table::new("separation", [shape.train("train", Epoch).validation("valid")])
}

/// The objective function is maximised, so its negative is the loss.
#[derive(Debug)]
struct Kaldi(Table);

impl Kaldi {
    fn new() -> Self {
        let shapes = [
            Shape::new(
                "LOG ({..}) Average objective function for '{..}' for minibatches {_}-{step} is {loss} over",
            )
            .train("negative objective", Interval),
            Shape::new("LOG ({..}) Overall average objective function for '{..}' is {loss} over")
                .train("negative overall objective", Epoch),
        ];
        Self(Table::new("kaldi", shapes))
    }
}

impl Grammar for Kaldi {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn starts(&self, byte: u8) -> bool {
        self.0.starts(byte)
    }

    fn goes_on(&self, byte: u8) -> bool {
        self.0.goes_on(byte)
    }

    fn read(&mut self, line: &str, end: End, draft: &mut Draft) -> Reading {
        let reading = self.0.read(line, end, draft);
        draft.found.losses.iter_mut().for_each(|loss| loss.value = -loss.value);
        reading
    }
}

/// `2epoch:train:101-200batch: iter_time=1e-4, loss=5.5, train_time=0.5`. Its `iter_time` is that of
/// the data, and `train_time` that of a batch.
#[derive(Debug, Default)]
struct Espnet {
    keys: Keys,
}

impl Grammar for Espnet {
    fn name(&self) -> &'static str {
        "espnet"
    }

    fn starts(&self, byte: u8) -> bool {
        byte.is_ascii_digit()
    }

    fn read(&mut self, line: &str, _: End, draft: &mut Draft) -> Reading {
        let Some((epoch, rest)) = scan::count(line) else { return Reading::Foreign };
        let Some(rest) = rest.strip_prefix("epoch") else { return Reading::Foreign };
        draft.found.epoch = u32::try_from(epoch).ok().map(f64::from);
        let reads = match rest.strip_prefix(" results:") {
            Some(results) => {
                let (train, valid) = results.split_once("[valid]").unwrap_or((results, ""));
                let valid = valid.split('[').next().unwrap_or_default();
                self.losses(train, Phase::Train, Epoch, draft);
                self.losses(valid, Phase::Validation, Epoch, draft);
                true
            }
            None => self.batches(rest, draft).is_some(),
        };
        if !reads || draft.found.losses.is_empty() {
            draft.clear();
            return Reading::Foreign;
        }
        main_loss_first(&mut draft.found.losses);
        Reading::Says
    }
}

impl Espnet {
    /// The text after the epoch: `:train:101-200batch: …`.
    fn batches(&mut self, text: &str, draft: &mut Draft) -> Option<()> {
        let (_, rest) = scan::count(text.strip_prefix(":train:")?)?;
        let (last, rest) = scan::count(rest.strip_prefix('-')?)?;
        let rest = rest.strip_prefix("batch:")?;
        (draft.found.step, draft.found.step_in_epoch) = (Some(last), true);
        self.losses(rest, Phase::Train, Interval, draft);
        Some(())
    }

    fn losses(&mut self, text: &str, phase: Phase, span: Span, draft: &mut Draft) {
        let Observation { step, .. } = draft.found;
        // A model has some parts of its loss; further fields are ignored.
        for field in scan::listed(text).take(64) {
            let Some((name, value)) = field.split_once('=') else { continue };
            let name = name.rsplit(' ').next().unwrap_or_default();
            let Some(value) = scan::whole(value) else { continue };
            if name == "train_time" && step.is_some() {
                draft.found.batch_seconds = Some(value).filter(|seconds| *seconds > 0.0);
            } else if matches!(self.keys.field(name), Field::Loss { .. }) {
                draft.push(name, phase, span, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn espnet() {
        let table = [
            (
                "[node3:0/4] 2026-01-01 10:00:00,123 (trainer:77) INFO: 2epoch:train:101-200batch: iter_time=1.1e-04, forward_time=0.2, loss_ctc=8.5, loss=5.5, acc=0.3, train_time=0.75",
                "epoch 2, batch 200, 0.75 s, rank 0, loss=5.5 Interval, loss_ctc=8.5 Interval",
            ),
            (
                "2epoch results: [train] loss=5.25, train_time=0.7, time=1 minute and 2.5 seconds, total_count=200, [valid] loss=4.5, acc=0.4, time=3 seconds, [att_plot] time=1 second",
                "epoch 2, loss=5.25 Epoch, loss=4.5 Validation Epoch",
            ),
            ("2epoch started", ""),
        ];
        check("espnet", false, &table);
    }

    #[test]
    fn wenet() {
        let table = [
            (
                "2026-01-01 10:00:00,123 DEBUG TRAIN Batch 1/300 loss 12.5 loss_att 11.0 loss_ctc 16.0 lr 0.0004 rank 0",
                "epoch 1, batch 300, rank 0, loss=12.5 Step",
            ),
            ("CV Batch 1/20 loss 9.5 loss_att 8.0 history loss 9.25 rank 0", ""),
            (
                "TRAIN | steps/sec 2.5| Batch 0/100 loss 11.5 loss_att 10.0 lr 0.0004 rank 0",
                "epoch 0, batch 100, 0.4 s, rank 0, loss=11.5 Step",
            ),
            ("Epoch 1 CV info cv_loss 9.125", "epoch 1, cv_loss=9.125 Validation Epoch"),
        ];
        check("wenet", true, &table);
    }

    #[test]
    fn kaldi() {
        let table = [
            (
                "LOG (nnet3-train[5.5]:Print():nnet-training.cc:77) Average objective function for 'output' for minibatches 200-299 is -1.25 over 6400 frames.",
                "step 299, negative objective=1.25 Interval",
            ),
            (
                "LOG (nnet3-train[5.5]:Print():nnet-training.cc:99) Overall average objective function for 'output' is -1.5 over 64000 frames.",
                "negative overall objective=1.5 Epoch",
            ),
        ];
        check("kaldi", true, &table);
    }
}
