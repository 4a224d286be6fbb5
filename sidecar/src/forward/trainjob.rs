//! The status of a Kubeflow `TrainJob` (KEP-2779): progress, time left and metrics.
//!
//! Its controller puts three variables into each container of the job: the URL, and the paths of the
//! certificate and of a token, which are rotated. So both files are read for each request.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use paceline_reporter::wire::{Progress, State};
use serde::Serialize;

use super::http::{Client, Trust, Url, read_bounded, secret};
use super::number::{number, to_the_second};
use super::{Ending, Item, Outcome, Takes, Target};

/// Variables that the controller sets.
const URL_VARIABLE: &str = "KUBEFLOW_TRAINER_SERVER_URL";
const CA_VARIABLE: &str = "KUBEFLOW_TRAINER_SERVER_CA_CERT";
const TOKEN_VARIABLE: &str = "KUBEFLOW_TRAINER_SERVER_TOKEN";
/// The time between two updates that the controller asks for.
const SPACING: Duration = Duration::from_secs(5);
/// The controller answers within this time.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The most bytes of a token.
const MAX_TOKEN: u64 = 64 * 1024;
/// The progress of a job that has not finished: only the end is 100 %.
const MAX_UNFINISHED: f64 = 99.0;

/// A `TrainJob` of Kubeflow.
#[derive(Debug)]
pub struct TrainJob {
    client: Client,
    certificate: Option<PathBuf>,
    token: PathBuf,
    /// What was sent last.
    last: Option<Status>,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    #[serde(skip_serializing_if = "Option::is_none")]
    progress_percentage: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_remaining_seconds: Option<i32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    metrics: Vec<Metric>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Metric {
    name: &'static str,
    value: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'s> {
    trainer_status: Update<'s>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Update<'s> {
    last_updated_time: String,
    #[serde(flatten)]
    status: &'s Status,
}

impl TrainJob {
    /// The job that the controller's variables name. An error is one line.
    pub fn from_environment(
        variable: impl Fn(&'static str) -> Option<OsString>,
    ) -> Result<Self, String> {
        let given = |name| variable(name).filter(|value| !value.is_empty());
        let missing = |name| {
            format!("{name} is not set; enable the feature gate TrainJobStatus of Kubeflow Trainer")
        };
        let text = given(URL_VARIABLE).ok_or_else(|| missing(URL_VARIABLE))?;
        let url = Url::parse(&text.to_string_lossy())
            .map_err(|expected| format!("invalid {URL_VARIABLE}: {expected}"))?;
        if !url.is_secure() {
            let why = "expected https://, because a token is sent";
            return Err(format!("invalid {URL_VARIABLE} \"{url}\": {why}"));
        }
        let token = given(TOKEN_VARIABLE).ok_or_else(|| missing(TOKEN_VARIABLE))?;
        Ok(Self {
            client: Client::new(url).map_err(|error| error.to_string())?,
            certificate: given(CA_VARIABLE).map(PathBuf::from),
            token: token.into(),
            last: None,
        })
    }

    fn read_token(&self) -> Result<hyper::header::HeaderValue, String> {
        let shown = self.token.display();
        let failed = |why: &dyn std::fmt::Display| format!("cannot read the token {shown}: {why}");
        let bytes = read_bounded(&self.token, MAX_TOKEN).map_err(|error| failed(&error))?;
        let text = String::from_utf8(bytes).map_err(|_| failed(&"it is not text"))?;
        let text = text.trim();
        if text.is_empty() {
            return Err(failed(&"it is empty"));
        }
        secret(&format!("Bearer {text}")).ok_or_else(|| failed(&"it is not one line of text"))
    }
}

impl Target for TrainJob {
    fn name(&self) -> String {
        "trainjob".to_owned()
    }

    fn takes(&self) -> Takes {
        Takes::Readings { period: SPACING, spacing: SPACING }
    }

    fn send(&mut self, item: &Item, ending: &Ending) -> Result<Outcome, String> {
        let Item::Reading { progress, .. } = item else { return Ok(Outcome::Nothing) };
        let status = status(progress);
        // Each rank has the variables, and one of them speaks for the job.
        let is_further = progress.rank.is_some_and(|rank| rank.global > 0);
        if is_further || self.last.as_ref() == Some(&status) {
            return Ok(Outcome::Nothing);
        }
        let last_updated_time = to_the_second(progress.now);
        let body = Body { trainer_status: Update { last_updated_time, status: &status } };
        let body = serde_json::to_string(&body).map_err(|error| error.to_string())?;
        let trust = self.certificate.as_deref().map_or(Trust::Machine, Trust::File);
        let time = ending.remaining(ANSWER_TIMEOUT);
        let sent = self.client.post(body, Some(self.read_token()?), &trust, time);
        sent.map_err(|error| error.to_string())?;
        self.last = Some(status);
        Ok(Outcome::Sent)
    }
}

/// The status that a reading shows.
fn status(progress: &Progress) -> Status {
    let signals = &progress.signals;
    let has_finished = progress.state == State::Finished;
    let percent = signals.progress_ratio.map(|ratio| (ratio * 100.0).min(MAX_UNFINISHED));
    let percent = if has_finished { Some(100.0) } else { percent };
    let left = if has_finished { Some(0.0) } else { signals.eta_seconds };
    let batch = &progress.batch_latency;
    let count = |count: Option<u64>| count.map(|count| count.to_string());
    let metrics = [
        ("loss", progress.eval.value.filter(|loss| loss.is_finite()).map(number)),
        ("validation_loss", progress.validation.map(|validation| number(validation.value))),
        ("current_step", count(progress.step)),
        ("total_steps", count(progress.total_steps)),
        ("current_epoch", count(progress.epoch)),
        ("batch_seconds", batch.last.map(number)),
    ];
    let known =
        metrics.into_iter().filter_map(|(name, value)| Some(Metric { name, value: value? }));
    Status {
        progress_percentage: percent.and_then(whole),
        estimated_remaining_seconds: left.and_then(whole),
        metrics: known.collect(),
    }
}

/// The whole number below, from 0 on; the largest one in place of more.
fn whole(value: f64) -> Option<i32> {
    let value = value.clamp(0.0, f64::from(i32::MAX)).floor();
    value.is_finite().then(|| format!("{value}").parse().ok()).flatten()
}

#[cfg(test)]
mod tests;
