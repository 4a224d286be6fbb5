//! The PyTorch examples and tutorials.

use paceline_lines::observation::Phase::Test;
use paceline_lines::observation::Span::{Epoch, Interval, Step};
use paceline_lines::observation::{Loss, Observation, Phase};
use paceline_lines::terminal::End;

use super::draft::Draft;
use super::shape::Shape;
use super::table::Table;
use super::{Grammar, Reading};

/// The grammars of this family.
pub(super) fn grammars() -> Vec<Box<dyn Grammar>> {
    vec![
        Box::new(mnist()),
        Box::new(word_language_model()),
        Box::new(dcgan()),
        Box::new(super_resolution()),
        Box::new(gcn()),
        Box::new(tutorials()),
        Box::new(catalyst()),
        Box::new(TimeSequence::default()),
    ]
}

/// Also `siamese_network`, `vae`, and `mnist_hogwild`, which puts the process id before the line. Earlier versions of
/// `open_clip` add times.
fn mnist() -> Table {
    let shapes = [
        Shape::new("Train Epoch: {epoch} [{sample}/{total} ({_}%)]\tLoss: {loss}")
            .train("Loss", Step)
            .timed("Batch (t): "),
        Shape::new("{_} Train Epoch: {epoch} [{sample}/{total} ({_}%)]\tLoss: {loss}")
            .train("Loss", Step),
        // Called "test", but evaluated after every epoch.
        Shape::new("Test set: Average loss: {loss}").validation("Average loss"),
        Shape::new("{_} Test set: Average loss: {loss}").validation("Average loss"),
        Shape::new("====> Epoch: {epoch} Average loss: {loss}").train("Average loss", Epoch),
        Shape::new("====> Test set loss: {loss}").validation("Test set loss"),
        Shape::new("Loss: {loss} after {step} batches").train("Loss", Step),
    ];
    Table::new("pytorch mnist", shapes)
}

fn word_language_model() -> Table {
    let shapes = [
        Shape::new(
            "| epoch {epoch} | {batch}/ {total} batches | lr {_} | ms/batch {ms} | loss {loss}",
        )
        .train("loss", Interval),
        Shape::new("| end of epoch {epoch} | time: {_}s | valid loss {loss}")
            .validation("valid loss"),
        // A logger's separator has taken the first bar.
        Shape::new(
            "epoch {epoch} | {batch}/ {total} batches | lr {_} | ms/batch {ms} | loss {loss}",
        )
        .train("loss", Interval),
        Shape::new("end of epoch {epoch} | time: {_}s | valid loss {loss}")
            .validation("valid loss"),
        Shape::new("| End of training | test loss {loss}").loss("test loss", Test, Epoch),
    ];
    Table::new("pytorch word language model", shapes)
}

fn dcgan() -> Table {
    let shape = Shape::new("[{epoch}/{epochs}][{batch}/{total}] Loss_D: {loss} Loss_G: {loss}");
    Table::new("pytorch dcgan", [shape.train("Loss_D", Step).train("Loss_G", Step)])
}

fn super_resolution() -> Table {
    let shapes = [
        Shape::new("===> Epoch[{epoch}]({batch}/{total}): Loss: {loss}").train("Loss", Step),
        Shape::new("===> Epoch {epoch} Complete: Avg. Loss: {loss}").train("Avg. Loss", Epoch),
    ];
    Table::new("pytorch super resolution", shapes)
}

/// Graph networks, whose epochs are single batches.
fn gcn() -> Table {
    let shapes = [
        Shape::new("Epoch: {epoch} ({s}s) loss_train: {loss} acc_train: {_} loss_val: {loss}")
            .train("loss_train", Epoch)
            .validation("loss_val"),
        Shape::new(
            "Epoch: {epoch} loss_train: {loss} acc_train: {_} loss_val: {loss} acc_val: {_} time: {s}s",
        )
        .train("loss_train", Epoch)
        .validation("loss_val"),
        Shape::new("Test set results: loss= {loss}").loss("loss", Test, Epoch),
        Shape::new("Test set results: loss {loss}").loss("loss", Test, Epoch),
    ];
    Table::new("pytorch gcn", shapes)
}

/// The quickstart, transfer learning and CIFAR-10.
fn tutorials() -> Table {
    let shapes = [
        Shape::new("loss: {loss} [{sample}/{total}]").train("loss", Step),
        Shape::new("Accuracy: {_}%, Avg loss: {loss}").validation("Avg loss"),
        Shape::new("train Loss: {loss} Acc:").train("train Loss", Epoch),
        Shape::new("val Loss: {loss} Acc:").validation("val Loss"),
        // I-JEPA, and others that began with the tutorial, add settings and a time.
        Shape::new("[{epoch}, {batch}] loss: {loss} {..}({ms} ms)").train("loss", Interval),
        Shape::new("[{epoch}, {batch}] loss: {loss}").train("loss", Interval),
        // Translation and names with a recurrent network: the time, the step and its percentage.
        Shape::new("{_}m {_}s (- {_}m {_}s) ({step} {_}%) {loss}").train("loss", Interval),
        Shape::new("{step} {_}% ({_}m {_}s) {loss} ").train("loss", Step),
    ];
    Table::new("pytorch tutorial", shapes)
}

fn catalyst() -> Table {
    let shapes = [
        Shape::new("train ({epoch}/{epochs}) loss: {loss}").train("loss", Epoch),
        Shape::new("train ({epoch}/{epochs}) {..}| loss: {loss}").train("loss", Epoch),
        Shape::new("valid ({epoch}/{epochs}) loss: {loss}").validation("loss"),
        Shape::new("valid ({epoch}/{epochs}) {..}| loss: {loss}").validation("loss"),
        Shape::new("{epoch}/{epochs} * Epoch (train): {..}loss: {loss}").train("loss", Epoch),
        Shape::new("{epoch}/{epochs} * Epoch (valid): {..}loss: {loss}").validation("loss"),
        Shape::new("{_}/{epochs} * Epoch {epoch} (train): {..}loss={loss}").train("loss", Epoch),
        Shape::new("{_}/{epochs} * Epoch {epoch} (valid): {..}loss={loss}").validation("loss"),
    ];
    Table::new("catalyst", shapes)
}

/// `time_sequence_prediction`: the step is on a line of its own, before several losses. Only the
/// first of them has it, because the same step again would be the same loss.
#[derive(Debug, Default)]
struct TimeSequence {
    began: bool,
    step: Option<u64>,
}

impl Grammar for TimeSequence {
    fn name(&self) -> &'static str {
        "pytorch time sequence"
    }

    fn starts(&self, byte: u8) -> bool {
        matches!(byte, b'S' | b'l' | b't')
    }

    fn read(&mut self, line: &str, _: End, draft: &mut Draft) -> Reading {
        if let Some(step) = line.strip_prefix("STEP:") {
            self.step = step.trim().parse().ok();
            self.began = self.step.is_some();
            return if self.began { Reading::Known } else { Reading::Foreign };
        }
        if !self.began {
            return Reading::Foreign;
        }
        let (name, phase, rest) = match line.strip_prefix("test ") {
            Some(rest) => ("test loss", Phase::Validation, rest),
            None => ("loss", Phase::Train, line),
        };
        let Some(value) = rest.strip_prefix("loss:").and_then(paceline_lines::scan::whole) else {
            return Reading::Foreign;
        };
        let span = if phase == Phase::Train { Step } else { Epoch };
        let losses = vec![Loss { name: name.to_owned(), phase, span, value }];
        draft.found = Observation { step: self.step.take(), losses, ..Observation::default() };
        Reading::Says
    }
}

#[cfg(test)]
mod tests;
