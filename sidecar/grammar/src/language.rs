//! Language models: nanoGPT, minGPT, char-rnn, XLM.

use paceline_lines::observation::Phase::Validation;
use paceline_lines::observation::Span::{Epoch, Step};

use super::Grammar;
use super::shape::Shape;
use super::table::Table;

/// The grammars of this family.
pub(super) fn grammars() -> Vec<Box<dyn Grammar>> {
    vec![Box::new(nanogpt()), Box::new(mingpt()), Box::new(char_rnn()), Box::new(xlm())]
}

fn nanogpt() -> Table {
    let shapes = [
        Shape::new("iter {step}: loss {loss}, time {ms}ms").train("loss", Step),
        // Both are means over batches drawn for the evaluation.
        Shape::new("step {step}: train loss {loss}, val loss {loss}")
            .train("train loss", Epoch)
            .validation("val loss"),
    ];
    Table::new("nanogpt", shapes)
}

fn mingpt() -> Table {
    let shapes = [
        Shape::new("Epoch {epoch} | Iter {batch} | Train Loss {loss}").train("Train Loss", Step),
        Shape::new("Epoch {epoch} | Iter {_} | Eval Loss {loss}").loss(
            "Eval Loss",
            Validation,
            Step,
        ),
        Shape::new("epoch {epoch} iter {batch}: train loss {loss}").train("train loss", Step),
        Shape::new("iter_dt {ms}ms; iter {step}: train loss {loss}").train("train loss", Step),
    ];
    Table::new("mingpt", shapes)
}

fn char_rnn() -> Table {
    let shape = Shape::new(
        "{step}/{total} (epoch {epoch}), train_loss = {loss}, grad/param norm = {_}, time/batch = {s}s",
    );
    let python =
        Shape::new("{step}/{total} (epoch {epoch}), train_loss = {loss}, time/batch = {s}");
    Table::new("char-rnn", [shape.train("train_loss", Step), python.train("train_loss", Step)])
}

/// The name of the objective, such as `MLM-en`, is that of its loss.
fn xlm() -> Table {
    let shape = Shape::new("{step} - {_} sent/s - {_} words/s - {..}: {loss}");
    Table::new("xlm", [shape.train("loss", Step)])
}

#[cfg(test)]
mod tests;
