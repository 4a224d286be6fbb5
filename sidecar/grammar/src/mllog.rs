//! `MLPerf`'s log: the name of a metric is in the member `key`, its number in `value`.

use std::borrow::Cow;

use paceline_lines::observation::{Loss, Observation, Phase, Span};
use paceline_lines::terminal::End;
use serde::Deserialize;

use super::draft::Draft;
use super::keys::{Field, Keys};
use super::{Grammar, Reading};

/// `:::MLLOG {"key": "train_loss", "value": 2.5, "metadata": {"step_num": 10}}`.
#[derive(Debug, Default)]
pub(super) struct MlLog {
    keys: Keys,
}

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow)]
    key: Cow<'a, str>,
    value: serde_json::Value,
    #[serde(default)]
    time_ms: Option<f64>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(alias = "step_num", alias = "iteration", alias = "global_step")]
    step: Option<f64>,
    #[serde(alias = "epoch_num")]
    epoch: Option<f64>,
}

impl Grammar for MlLog {
    fn name(&self) -> &'static str {
        "mlperf"
    }

    fn starts(&self, byte: u8) -> bool {
        byte == b':'
    }

    fn read(&mut self, line: &str, _: End, draft: &mut Draft) -> Reading {
        let Some(text) = line.strip_prefix(":::MLLOG ") else { return Reading::Foreign };
        Reading::from_found(self.entry(text), draft, Reading::Known)
    }
}

impl MlLog {
    fn entry(&mut self, text: &str) -> Option<Observation> {
        let Entry { key, value, time_ms, metadata } = serde_json::from_str(text).ok()?;
        let Field::Loss { phase, span } = self.keys.field(&key) else { return None };
        let value = value.as_f64()?;
        let usual = if phase == Phase::Train { Span::Step } else { Span::Epoch };
        let loss = Loss { name: key.into_owned(), phase, span: span.unwrap_or(usual), value };
        Some(Observation {
            at: time_ms.map(|at| at / 1e3),
            step: metadata.step.and_then(paceline_lines::number::whole),
            epoch: metadata.epoch.filter(|epoch| epoch.is_finite()),
            losses: vec![loss],
            ..Observation::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn entries_of_losses_are_read() {
        let table = [
            (
                r#":::MLLOG {"namespace": "", "time_ms": 1767261600500, "key": "train_loss", "value": 2.5, "metadata": {"step_num": 10}}"#,
                "step 10, at 1767261600.5, train_loss=2.5 Step",
            ),
            (
                r#"3: :::MLLOG {"key": "eval_loss", "value": 2.25, "metadata": {"epoch_num": 1}}"#,
                "epoch 1, rank 3, eval_loss=2.25 Validation Epoch",
            ),
            (r#":::MLLOG {"key": "eval_accuracy", "value": 0.5, "metadata": null}"#, ""),
            (r#":::MLLOG {"key": "seed", "value": 5}"#, ""),
            (":::MLLOG {", ""),
        ];
        check("mlperf", true, &table);
    }
}
