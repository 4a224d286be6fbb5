//! JAX: the examples of flax and gemma, trax, and clu's metric writer.

use paceline_lines::names::phase_of_folder;
use paceline_lines::observation::Span::{Epoch, Interval, Step};
use paceline_lines::observation::{Observation, Phase};
use paceline_lines::scan;
use paceline_lines::terminal::End;

use super::draft::Draft;
use super::keys::{Keys, main_loss_first};
use super::shape::Shape;
use super::table::Table;
use super::{Grammar, Reading};

/// The grammars of this family.
pub(super) fn grammars() -> Vec<Box<dyn Grammar>> {
    vec![Box::new(flax()), Box::new(Clu::default())]
}

fn flax() -> Table {
    let shapes = [
        Shape::new("epoch: {epoch}, train_loss: {loss}, train_accuracy: {_}, test_loss: {loss}")
            .train("train_loss", Epoch)
            // Called "test", but evaluated after every epoch.
            .validation("test_loss"),
        Shape::new("train epoch: {epoch}, loss: {loss}").train("loss", Epoch),
        Shape::new("eval epoch: {epoch}, loss: {loss}").validation("loss"),
        Shape::new("train step: {step}, loss: {loss}").train("loss", Step),
        Shape::new("eval step: {step}, loss: {loss}").validation("loss"),
        Shape::new("Finished training step {step}. Batch size: {_}, Loss: {loss}")
            .train("Loss", Step),
        Shape::new("Step {step}: train {..}Loss | {loss}").train("train loss", Interval),
        Shape::new("Step {step}: eval {..}Loss | {loss}").validation("eval loss"),
    ];
    Table::new("flax", shapes)
}

/// `[100] accuracy=0.5, loss=2.3`.
#[derive(Debug, Default)]
struct Clu {
    keys: Keys,
}

impl Grammar for Clu {
    fn name(&self) -> &'static str {
        "clu"
    }

    fn starts(&self, byte: u8) -> bool {
        byte == b'['
    }

    fn read(&mut self, line: &str, _: End, draft: &mut Draft) -> Reading {
        Reading::from_found(self.line(line), draft, Reading::Foreign)
    }
}

impl Clu {
    fn line(&mut self, line: &str) -> Option<Observation> {
        let (step, rest) = scan::count(line.strip_prefix('[')?)?;
        let mut rest = rest.strip_prefix("] ")?;
        let mut of_data = None;
        if let Some((data, after)) =
            rest.strip_prefix("collection=").and_then(|r| r.split_once(' '))
        {
            (of_data, rest) = (phase_of_folder(data), after);
        }
        let mut draft = Draft::default();
        for pair in scan::listed(rest) {
            let (key, value) = pair.split_once('=')?;
            if let Some(value) = scan::whole(value) {
                self.keys.put(key, value, &mut draft);
            }
        }
        let mut found = draft.found;
        found.step = Some(step);
        found.step_in_epoch = false;
        if let Some(phase) = of_data.filter(|phase| *phase != Phase::Train) {
            for loss in &mut found.losses {
                (loss.phase, loss.span) = (phase, Epoch);
            }
        }
        main_loss_first(&mut found.losses);
        (!found.losses.is_empty()).then_some(found)
    }
}

#[cfg(test)]
mod tests;
