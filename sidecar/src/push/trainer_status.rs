//! The body of `POST /v1/trainer-status`: Kubeflow Trainer's status update (KEP-2779). The
//! callbacks that ship with training libraries can send it here.

use paceline_lines::names::{self, Meaning};
use paceline_lines::number::whole;
use paceline_lines::observation::{Loss, Observation, Phase, Span};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    trainer_status: Status,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    progress_percentage: Option<f64>,
    estimated_remaining_seconds: Option<f64>,
    #[serde(default)]
    metrics: Vec<Metric>,
}

#[derive(Debug, Deserialize)]
struct Metric {
    name: String,
    /// Strings in the specification, so that NaN survives; numbers are taken as well.
    value: Value,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Value {
    Text(String),
    Number(f64),
}

/// Reads a body. An error is one line.
pub fn parse(body: &[u8]) -> Result<Observation, String> {
    let Body { trainer_status: status } =
        serde_json::from_slice(body).map_err(|error| error.to_string())?;
    for (name, value, most, allowed) in [
        ("progressPercentage", status.progress_percentage, 100.0, "from 0 to 100"),
        (
            "estimatedRemainingSeconds",
            status.estimated_remaining_seconds,
            f64::MAX,
            "of at least 0",
        ),
    ] {
        if let Some(value) = value.filter(|value| !(0.0..=most).contains(value)) {
            return Err(format!(
                "invalid trainerStatus.{name} {value}: expected a number {allowed}"
            ));
        }
    }
    let done = status.progress_percentage.map(|percentage| percentage / 100.0);
    // Only the last update of a training has this metric: its loss is the mean of the whole run.
    let is_last = status.metrics.iter().any(|metric| metric.name.ends_with("train_runtime"));
    let usual = if is_last { Span::Run } else { Span::Interval };
    let mut found = Observation { done, ..Observation::default() };
    for Metric { name, value } in status.metrics {
        let value = match value {
            Value::Number(value) => value,
            Value::Text(text) => text.trim().parse().map_err(|_| {
                format!("invalid trainerStatus.metrics {name} {text:?}: expected a number")
            })?,
        };
        take(&mut found, name, value, usual);
    }
    Ok(found)
}

/// Takes a metric; most are ignored. `usual` is the span of a training loss.
fn take(found: &mut Observation, name: String, value: f64, usual: Span) {
    match names::meaning(&name) {
        Some(Meaning::Loss { phase, span }) => {
            let phase = phase.unwrap_or(Phase::Train);
            let span = if phase == Phase::Train { usual } else { span.unwrap_or(Span::Epoch) };
            found.losses.push(Loss { name, phase, span, value });
        }
        Some(Meaning::Epoch) => found.epoch = Some(value),
        Some(Meaning::Step) => found.step = whole(value),
        Some(Meaning::TotalSteps) => found.total_steps = whole(value),
        Some(Meaning::TotalEpochs) => found.total_epochs = whole(value),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn losses_of_a_status_update_are_read() {
        let body = r#"{"trainerStatus": {"progressPercentage": 45, "estimatedRemainingSeconds": 60,
            "lastUpdatedTime": "2026-01-01T00:00:00Z", "metrics": [
            {"name": "loss", "value": "0.25"}, {"name": "eval_loss", "value": "nan"},
            {"name": "grad_norm", "value": "1.5"}, {"name": "epoch", "value": "0.5"}]}}"#;
        let found = parse(body.as_bytes()).unwrap();
        assert_eq!((found.losses.len(), found.epoch), (2, Some(0.5)));
        assert_eq!((found.done, found.step, found.total_steps), (Some(0.45), None, None));
        assert_eq!((found.losses[0].phase, found.losses[0].value), (Phase::Train, 0.25));
        assert!(found.losses[1].phase == Phase::Validation && found.losses[1].value.is_nan());
    }

    #[test]
    fn steps_are_read_where_they_are_given() {
        let body = r#"{"trainerStatus": {"progressPercentage": 62, "metrics": [
            {"name": "current_step", "value": "15"}, {"name": "total_steps", "value": "24"},
            {"name": "current_epoch", "value": "1.25"}]}}"#;
        let found = parse(body.as_bytes()).unwrap();
        assert_eq!((found.step, found.total_steps), (Some(15), Some(24)));
    }

    #[test]
    fn loss_of_the_last_update_spans_the_run() {
        let body = r#"{"trainerStatus": {"progressPercentage": 100, "metrics": [
            {"name": "train_runtime", "value": "3"}, {"name": "train_loss", "value": "3.1"}]}}"#;
        assert_eq!(parse(body.as_bytes()).unwrap().losses[0].span, Span::Run);
    }

    #[test]
    fn errors_name_the_field() {
        let error = |body: &str| parse(body.as_bytes()).unwrap_err();
        assert!(error("{}").contains("trainerStatus"));
        let body = r#"{"trainerStatus":{"metrics":[{"name":"loss","value":"low"}]}}"#;
        assert_eq!(error(body), "invalid trainerStatus.metrics loss \"low\": expected a number");
        let body = r#"{"trainerStatus":{"progressPercentage":-1}}"#;
        assert_eq!(
            error(body),
            "invalid trainerStatus.progressPercentage -1: expected a number from 0 to 100"
        );
    }

    proptest! {
        #[test]
        fn any_body_is_parsed_without_panic(body in any::<Vec<u8>>()) {
            drop(parse(&body));
        }
    }
}
