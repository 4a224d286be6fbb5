//! Large language models: Megatron, torchtitan, prime-rl.

use paceline_lines::observation::Span::{Interval, Step};

use super::Grammar;
use super::shape::Shape;
use super::table::Table;

/// The grammars of this family.
pub(super) fn grammars() -> Vec<Box<dyn Grammar>> {
    vec![Box::new(megatron()), Box::new(torchtitan()), Box::new(prime_rl())]
}

fn megatron() -> Table {
    let shapes = [
        Shape::new(
            "iteration {step}/ {total} |{..}elapsed time per iteration (ms): {ms} |{..}lm loss: {loss}",
        )
        .train("lm loss", Interval),
        Shape::new("validation loss at iteration {step} {..}lm loss value: {loss}")
            .validation("lm loss"),
    ];
    Table::new("megatron", shapes)
}

/// The tokens per second are per device and do not give the time of a step.
fn torchtitan() -> Table {
    let shapes = [
        Shape::new("step: {step} loss: {loss} grad_norm:").train("loss", Step),
        Shape::new("step: {step} loss: {loss} memory:").train("loss", Step),
        Shape::new("validate step: {step} loss: {loss} memory:").validation("loss"),
    ];
    Table::new("torchtitan", shapes)
}

fn prime_rl() -> Table {
    let shape = Shape::new("Step {step} | Time: {s}s | Loss: {loss} |");
    Table::new("prime-rl", [shape.train("Loss", Step)])
}

#[cfg(test)]
mod tests;
