//! `BigDL`, TensorFlow's Estimator, Deeplearning4j, Torch7, Marian, CNTK, `MaxText`, `TFLearn`, a tutorial.

use paceline_lines::observation::Phase;
use paceline_lines::observation::Span::{Epoch, Interval, Run, Step};
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
        Box::new(bigdl()),
        Box::new(Estimator::default()),
        Box::new(deeplearning4j()),
        Box::new(torch7()),
        Box::new(marian()),
        Box::new(cntk()),
        Box::new(maxtext()),
        Box::new(recurrent()),
        Box::new(TfLearn::new()),
    ]
}

/// A tutorial on recurrent networks.
fn recurrent() -> Table {
    let shape = Shape::new("Loss after num_examples_seen={_} epoch={epoch}: {loss}");
    Table::new("recurrent network", [shape.train("Loss", Epoch)])
}

/// `Training Step: 8 | total loss: 2.5 | time: 0.2s`, and a line that repeats the loss, names the epoch and counts
/// samples. Once such a line has followed, the step is reported with it.
#[derive(Debug)]
struct TfLearn {
    step: Shape,
    epoch: Shape,
    samples: Shape,
    validation: Shape,
    /// A line with the epoch follows each step.
    in_two: bool,
    /// The last step and its loss, until the line with its epoch comes.
    waiting: Option<(u64, f64)>,
}

/// Behind the name of the optimizer.
const EPOCH: &str = "| epoch: ";

impl TfLearn {
    fn new() -> Self {
        Self {
            step: Shape::new("Training Step: {step} | total loss: {loss} | time: {_}s")
                .train("total loss", Step),
            epoch: Shape::new("| epoch: {epoch} | loss: {_}"),
            samples: Shape::new("| epoch: {_} | loss: {_}{..}-- iter: {_}/{_}"),
            validation: Shape::new("{..}| val_loss: {loss} -").validation("val_loss"),
            in_two: false,
            waiting: None,
        }
    }

    /// Takes the line of a step. It is reported at once, or in its place the one before, whose epoch has not come.
    fn step(&mut self, draft: &mut Draft) -> Reading {
        if !self.in_two {
            return Reading::Says;
        }
        let loss = draft.found.losses.first().map(|loss| loss.value);
        let before = std::mem::replace(&mut self.waiting, draft.found.step.zip(loss));
        draft.clear();
        if put(before, draft) { Reading::Says } else { Reading::Known }
    }
}

/// Puts a step and its loss into a draft. Returns whether there is one.
fn put(waiting: Option<(u64, f64)>, draft: &mut Draft) -> bool {
    let Some((step, loss)) = waiting else { return false };
    draft.found.step = Some(step);
    draft.push("total loss", Phase::Train, Step, loss);
    true
}

impl Grammar for TfLearn {
    fn name(&self) -> &'static str {
        "tflearn"
    }

    fn starts(&self, byte: u8) -> bool {
        byte == b'|' || byte.is_ascii_uppercase()
    }

    fn read(&mut self, line: &str, _: End, draft: &mut Draft) -> Reading {
        if self.step.read(line, draft).is_some() {
            return self.step(draft);
        }
        let Some(rest) = line.find(EPOCH).and_then(|at| line.get(at..)) else {
            return Reading::Foreign;
        };
        let validates = self.validation.read(rest, draft).is_some();
        if !validates && self.samples.read(rest, draft).is_none() {
            return Reading::Foreign;
        }
        self.in_two = true;
        if self.epoch.read(rest, draft).is_none() {
            return Reading::Known;
        }
        if put(self.waiting.take(), draft) || validates { Reading::Says } else { Reading::Known }
    }
}

fn bigdl() -> Table {
    let shapes = [
        Shape::new("[Epoch {epoch} {_}/{_}][Iteration {step}][{..}] Train {_} in {s}seconds.{..}Loss is {loss}")
            .train("Loss", Step),
        Shape::new("[Epoch {epoch} {_}/{_}][Iteration {step}][{..}] Trained {_} records in {s} seconds.{..}Loss is {loss}")
            .train("Loss", Step),
        Shape::new("Loss is (Loss: {_}, count: {_}, Average Loss: {loss})").validation("Average Loss"),
    ];
    Table::new("bigdl", shapes)
}

fn deeplearning4j() -> Table {
    let shapes = [
        Shape::new("Score at iteration {step} is {loss}").train("Score", Step),
        Shape::new("ScoreIterationListener: Score at iteration {step} is {loss}").train("Score", Step),
        Shape::new("o.d.o.l.ScoreIterationListener - Score at iteration {step} is {loss}")
            .train("Score", Step),
        Shape::new("ETL: {_} ms; iteration {step}; iteration time: {ms} ms; samples/sec: {_}; batches/sec: {_}; score: {loss}")
            .train("score", Step),
    ];
    Table::new("deeplearning4j", shapes)
}

/// Torch7's own trainer calls the loss an error.
fn torch7() -> Table {
    let shape = Shape::new("# current error = {loss}");
    Table::new("torch7", [shape.train("current error", Epoch)])
}

fn marian() -> Table {
    let shapes = [
        Shape::new("Ep. {epoch} : Up. {step} : Sen. {_} : Cost {loss}").train("Cost", Interval),
        Shape::new("[valid] Ep. {epoch} : Up. {step} : cross-entropy : {loss}")
            .validation("cross-entropy"),
        Shape::new("[valid] Ep. {epoch} : Up. {step} : ce-mean-words : {loss}")
            .validation("ce-mean-words"),
    ];
    Table::new("marian", shapes)
}

fn cntk() -> Table {
    let shapes = [
        Shape::new("Minibatch[ {_}- {batch}]: loss = {loss}").train("loss", Interval),
        Shape::new("Finished Epoch[{epoch} of {epochs}]: [Training] loss = {loss}")
            .train("loss", Epoch),
        Shape::new("Finished Epoch[{epoch}]: [Training] loss = {loss}").train("loss", Epoch),
    ];
    Table::new("cntk", shapes)
}

/// The seconds are those of the step.
fn maxtext() -> Table {
    let shape = Shape::new("completed step: {step}, seconds: {s}, {..}, loss: {loss}");
    Table::new("maxtext", [shape.train("loss", Step)])
}

/// `loss = 4.5, step = 200 (12.5 sec)`, with the seconds since the step of the line before, and
/// `Saving dict for global step 200: accuracy = 0.5, loss = 4.75`.
#[derive(Debug, Default)]
struct Estimator {
    keys: Keys,
    last: Option<u64>,
}

impl Grammar for Estimator {
    fn name(&self) -> &'static str {
        "tensorflow estimator"
    }

    fn starts(&self, byte: u8) -> bool {
        matches!(byte, b'l' | b'S' | b'L')
    }

    fn read(&mut self, line: &str, _: End, draft: &mut Draft) -> Reading {
        let read = match line.as_bytes().first() {
            Some(b'l') => self.step(line, draft),
            Some(b'S') => self.evaluation(line, draft),
            _ => last(line, draft),
        };
        if read.is_some() && !draft.found.losses.is_empty() {
            return Reading::Says;
        }
        draft.clear();
        Reading::Foreign
    }
}

impl Estimator {
    fn step(&mut self, line: &str, draft: &mut Draft) -> Option<()> {
        let (value, rest) = scan::value(line.strip_prefix("loss = ")?)?;
        let (step, rest) = scan::count(rest.strip_prefix(", step = ")?)?;
        let before = self.last.replace(step);
        draft.found.step = Some(step);
        draft.push("loss", Phase::Train, Step, value);
        let seconds = rest.strip_prefix(" (").and_then(scan::number);
        if let Some((seconds, " sec)")) = seconds
            && let Some(steps) = before.and_then(|before| step.checked_sub(before))
            && let Ok(steps) = u32::try_from(steps)
            && steps > 0
        {
            draft.found.batch_seconds = Some(seconds / f64::from(steps)).filter(|s| *s > 0.0);
        }
        Some(())
    }

    fn evaluation(&mut self, line: &str, draft: &mut Draft) -> Option<()> {
        let (step, rest) = scan::count(line.strip_prefix("Saving dict for global step ")?)?;
        draft.found.step = Some(step);
        for field in scan::listed(rest.strip_prefix(": ")?).take(64) {
            if let Some((name, value)) = field.split_once(" = ")
                && matches!(self.keys.field(name), Field::Loss { .. })
                && let Some(value) = scan::whole(value)
            {
                draft.push(name, Phase::Validation, Epoch, value);
            }
        }
        main_loss_first(&mut draft.found.losses);
        Some(())
    }
}

/// `Loss for final step: 3.5.`: it repeats the loss of a step.
fn last(line: &str, draft: &mut Draft) -> Option<()> {
    let (value, _) = scan::value(line.strip_prefix("Loss for final step: ")?)?;
    draft.push("Loss", Phase::Train, Run, value);
    Some(())
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn bigdl() {
        let table = [
            (
                "2026-01-01 10:00:00 INFO  DistriOptimizer$:77 - [Epoch 2 640/1000][Iteration 12][Wall Clock 9.5s] Train 64 in 0.25seconds. Throughput is 256.0 records/second. Loss is 0.75.",
                "epoch 2, step 12, 0.25 s, Loss=0.75 Step",
            ),
            (
                "[Epoch 2 640/1000][Iteration 12][Wall Clock 9.5s] Trained 64.0 records in 0.25 seconds. Throughput is 256.0 records/second. Loss is 0.75. Current learning rate is 0.01.",
                "epoch 2, step 12, 0.25 s, Loss=0.75 Step",
            ),
            (
                "Loss is (Loss: 64.0, count: 128, Average Loss: 0.5)",
                "Average Loss=0.5 Validation Epoch",
            ),
        ];
        check("bigdl", true, &table);
    }

    #[test]
    fn estimator() {
        let table = [
            ("INFO:tensorflow:loss = 9.5, step = 0", "step 0, loss=9.5 Step"),
            ("INFO:tensorflow:global_step/sec: 0.5", ""),
            ("INFO:tensorflow:loss = 4.5, step = 50 (12.5 sec)", "step 50, 0.25 s, loss=4.5 Step"),
            (
                "INFO:tensorflow:Saving dict for global step 50: accuracy = 0.5, average_loss = 0.25, global_step = 50, loss = 4.75",
                "step 50, loss=4.75 Validation Epoch, average_loss=0.25 Validation Epoch",
            ),
            ("INFO:tensorflow:Loss for final step: 4.25.", "Loss=4.25 Run"),
        ];
        check("tensorflow estimator", false, &table);
    }

    #[test]
    fn others() {
        for (name, line, expected) in [
            ("deeplearning4j", "Score at iteration 30 is 0.625", "step 30, Score=0.625 Step"),
            (
                "deeplearning4j",
                "o.d.o.l.ScoreIterationListener - Score at iteration 30 is 0.625",
                "step 30, Score=0.625 Step",
            ),
            (
                "marian",
                "[2026-01-01 10:00:00] Ep. 2 : Up. 3000 : Sen. 64,000 : Cost 5.5 : Time 12.5s : 2000.00 words/s",
                "epoch 2, step 3000, Cost=5.5 Interval",
            ),
            (
                "marian",
                "[2026-01-01 10:00:00] [valid] Ep. 2 : Up. 3000 : cross-entropy : 95.5 : new best",
                "epoch 2, step 3000, cross-entropy=95.5 Validation Epoch",
            ),
            (
                "cntk",
                " Minibatch[   1- 100]: loss = 2.5 * 6400, metric = 50.00% * 6400;",
                "batch 100, loss=2.5 Interval",
            ),
            (
                "cntk",
                "Finished Epoch[2 of 5]: [Training] loss = 0.5 * 60000, metric = 9.5% * 60000 5.5s (9999.9 samples/s);",
                "epoch 2/5, loss=0.5 Epoch",
            ),
            (
                "recurrent network",
                "2026-01-01 10:00:00: Loss after num_examples_seen=100 epoch=1: 8.5",
                "epoch 1, Loss=8.5 Epoch",
            ),
            (
                "tflearn",
                "Training Step: 8  | total loss: 2.5 | time: 0.275s",
                "step 8, total loss=2.5 Step",
            ),
            (
                "tflearn",
                "| Adam | epoch: 001 | loss: 2.25 - acc: 0.3264 | val_loss: 1.25 - val_acc: 0.5 -- iter: 00640/55000",
                "epoch 1, val_loss=1.25 Validation Epoch",
            ),
            (
                "maxtext",
                "completed step: 7, seconds: 1.25, TFLOP/s/device: 99.5, Tokens/s/device: 3000.5, total_weights: 65536, loss: 8.5",
                "step 7, 1.25 s, loss=8.5 Step",
            ),
        ] {
            check(name, true, &[(line, expected)]);
        }
    }
}
