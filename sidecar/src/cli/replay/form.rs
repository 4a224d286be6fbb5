//! Reports as text and as JSON.

use serde_json::{Map, Value, json};

use crate::merger::Entry;

/// One line for people.
pub(super) fn text(entries: &[Entry]) -> String {
    let words = entries.iter().map(|entry| match entry {
        Entry::Loss(loss) => format!("loss {loss}"),
        Entry::Validation(loss) => format!("validation loss {loss}"),
        Entry::Batch(seconds) => format!("batch {seconds:.6} s"),
        Entry::Step(step) => format!("step {step}"),
        Entry::Epoch(epoch) => format!("epoch {epoch}"),
        Entry::TotalSteps(Some(steps)) => format!("of {steps} steps"),
        Entry::TotalSteps(None) => "of an unknown number of steps".to_owned(),
        Entry::ExpectedSteps(steps) => format!("{steps} steps expected"),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// One object for programs.
pub(super) fn json(entries: &[Entry]) -> Value {
    let fields = entries.iter().map(|entry| match *entry {
        // JSON has no NaN, so it is written as a string.
        Entry::Loss(loss) if !loss.is_finite() => ("loss", json!(loss.to_string())),
        Entry::Loss(loss) => ("loss", json!(loss)),
        Entry::Validation(loss) if !loss.is_finite() => ("val_loss", json!(loss.to_string())),
        Entry::Validation(loss) => ("val_loss", json!(loss)),
        Entry::Batch(seconds) => ("batch_seconds", json!(seconds)),
        Entry::Step(step) => ("step", json!(step)),
        Entry::Epoch(epoch) => ("epoch", json!(epoch)),
        Entry::TotalSteps(steps) => ("total_steps", json!(steps)),
        Entry::ExpectedSteps(steps) => ("expected_steps", json!(steps)),
    });
    fields.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into()
}
