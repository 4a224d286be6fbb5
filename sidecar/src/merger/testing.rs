//! What tests read.

use paceline_lines::observation::{Loss, Observation, Phase, Span};

/// A line with one training loss.
pub(super) fn line(step: u64, name: &str) -> Observation {
    let loss = Loss { name: name.to_owned(), phase: Phase::Train, span: Span::Step, value: 0.5 };
    Observation { step: Some(step), losses: vec![loss], ..Observation::default() }
}
