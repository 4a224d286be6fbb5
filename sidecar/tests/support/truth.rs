//! The expected losses of a fixture, as its framework recorded them.

use paceline_lines::observation::{Phase, Span};
use serde::Deserialize;

/// One expected loss. Missing fields are not compared.
#[derive(Debug, Deserialize)]
pub(crate) struct Row {
    pub(crate) phase: String,
    pub(crate) name: String,
    pub(crate) loss: Number,
    mean: String,
    pub(crate) step: Option<u64>,
    unit: Option<String>,
    pub(crate) of: Option<u64>,
    pub(crate) epoch: Option<f64>,
    pub(crate) global_step: Option<u64>,
    pub(crate) batch_seconds: Option<f64>,
    pub(crate) batch_seconds_printed: Option<f64>,
}

/// JSON has no NaN and no infinity, so they are strings.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Number {
    Float(f64),
    Word(String),
}

impl Number {
    pub(crate) fn value(&self) -> f64 {
        match self {
            Self::Float(value) => *value,
            Self::Word(word) => word.parse().unwrap(),
        }
    }
}

impl Row {
    pub(crate) fn phase(&self) -> Phase {
        match self.phase.as_str() {
            "train" => Phase::Train,
            "validation" => Phase::Validation,
            "test" => Phase::Test,
            other => panic!("unknown phase {other}"),
        }
    }

    pub(crate) fn span(&self) -> Span {
        match self.mean.as_str() {
            "step" => Span::Step,
            "interval" => Span::Interval,
            "epoch_so_far" => Span::EpochSoFar,
            "epoch" => Span::Epoch,
            "run" => Span::Run,
            other => panic!("unknown span {other}"),
        }
    }

    /// Whether `step` and `of` count samples.
    pub(crate) fn in_samples(&self) -> bool {
        self.unit.as_deref() == Some("sample")
    }
}

/// The rows of a file.
pub(crate) fn parse(text: &str) -> Vec<Row> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
