//! Boosted trees: `XGBoost` and `LightGBM`. A round is a step.

use super::draft::Draft;
use super::{Grammar, Reading, scan};
use crate::observation::{Loss, Observation, Phase, Span};
use crate::terminal::End;

/// The grammars of this family.
pub(super) fn grammars() -> Vec<Box<dyn Grammar>> {
    vec![Box::new(XgBoost), Box::new(LightGbm)]
}

/// `[0]⇥train-logloss:0.6⇥eval-logloss:0.5`.
#[derive(Debug)]
struct XgBoost;

/// `[10]⇥training's l2: 0.1⇥valid_0's l2: 0.2`.
#[derive(Debug)]
struct LightGbm;

/// Metrics that are better when larger.
const SCORES: [&str; 17] = [
    "auc",
    "aucpr",
    "ndcg",
    "map",
    "pre",
    "accuracy",
    "average_precision",
    "auc_mu",
    "f1",
    "r2",
    "interval-regression-accuracy",
    "precision",
    "recall",
    "acc",
    "gini",
    "cindex",
    "score",
];

impl Grammar for XgBoost {
    fn name(&self) -> &'static str {
        "xgboost"
    }

    fn starts(&self, byte: u8) -> bool {
        byte == b'['
    }

    fn read(&mut self, line: &str, _: End, draft: &mut Draft) -> Reading {
        let fields = |field| {
            let (name, value): (&str, &str) = str::rsplit_once(field, ':')?;
            let (data, metric) = name.split_once('-')?;
            // Cross validation puts the standard deviation behind the mean.
            let value = value.split('+').next().unwrap_or_default();
            Some((name, data, metric, scan::whole(value)?))
        };
        Reading::of(round(line, fields), draft, Reading::Foreign)
    }
}

impl Grammar for LightGbm {
    fn name(&self) -> &'static str {
        "lightgbm"
    }

    fn starts(&self, byte: u8) -> bool {
        byte == b'['
    }

    fn read(&mut self, line: &str, _: End, draft: &mut Draft) -> Reading {
        let fields = |field| {
            let (name, value): (&str, &str) = str::rsplit_once(field, ": ")?;
            let (data, metric) = name.split_once("'s ")?;
            let value = value.split('+').next().unwrap_or_default();
            Some((name, data, metric, scan::whole(value)?))
        };
        Reading::of(round(line, fields), draft, Reading::Foreign)
    }
}

/// What a round says; `fields` takes a field apart into its name, the name of the data, that of the
/// metric, and the value.
fn round<'a>(
    line: &'a str,
    fields: impl Fn(&'a str) -> Option<(&'a str, &'a str, &'a str, f64)>,
) -> Option<Observation> {
    let (step, rest) = scan::count(line.strip_prefix('[')?)?;
    let rest = rest.strip_prefix("]\t")?;
    let mut losses = Vec::new();
    // Libraries print a handful of metrics; a line with hundreds is cut short.
    for field in rest.split('\t').take(16) {
        let (name, data, metric, value) = fields(field)?;
        let metric = metric.split('@').next().unwrap_or_default();
        if SCORES.contains(&metric) {
            continue;
        }
        let phase = phase(data);
        let span = if phase == Phase::Train { Span::Step } else { Span::Epoch };
        losses.push(Loss { name: name.to_owned(), phase, span, value });
    }
    losses.sort_by_key(|loss| loss.phase);
    let observation = Observation { step: Some(step), losses, ..Observation::default() };
    (!observation.losses.is_empty()).then_some(observation)
}

fn phase(data: &str) -> Phase {
    if data.starts_with("train") || data == "learn" || data == "dtrain" {
        Phase::Train
    } else if data.contains("test") {
        Phase::Test
    } else {
        Phase::Validation
    }
}

#[cfg(test)]
mod tests;
