//! Sends metrics, and tries again for a bounded time.

use std::time::Duration;

use hyper::StatusCode;
use prost::Message;
use tokio::time::sleep;

use crate::client::{Answer, Client};
use crate::proto::{ExportMetricsServiceRequest, ExportMetricsServiceResponse};
use crate::request::{Times, message};
use crate::settings::{Protocol, SettingError, Settings};

/// How long to wait before each further attempt, unless the receiver asks for longer.
const RETRIES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];
/// The longest wait that a receiver may ask for. The next message has all values anyway.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(30);
/// The most characters of a receiver's words in an error.
const MAX_WORDS: usize = 200;

/// Why metrics were not sent. One line without secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// No answer came.
    #[error("{0}")]
    Connection(String),
    /// The receiver refused the message.
    #[error("the receiver answered {status}{words}")]
    Refused {
        /// Its answer.
        status: u16,
        /// What it said, after a colon.
        words: String,
    },
    /// The receiver took a part of the message.
    #[error("the receiver refused {points} values{words}")]
    Partial {
        /// The number of refused values.
        points: i64,
        /// What it said, after a colon.
        words: String,
    },
}

/// Sends metrics to one receiver.
#[derive(Debug)]
pub struct Exporter {
    client: Client,
    protocol: Protocol,
    interval: Duration,
    resource: Vec<(String, String)>,
    place: String,
}

impl Exporter {
    /// An exporter for a sender with these attributes, each of which the settings may override.
    ///
    /// # Errors
    /// If a certificate cannot be read.
    pub fn new(settings: &Settings, own: Vec<(String, String)>) -> Result<Self, SettingError> {
        let mut resource = settings.resource.clone();
        for (key, value) in own {
            if !resource.iter().any(|(known, _)| *known == key) {
                resource.push((key, value));
            }
        }
        let endpoint = &settings.endpoint;
        let place = endpoint.authority().map_or("", |authority| authority.as_str());
        Ok(Self {
            client: Client::new(settings)?,
            protocol: settings.protocol,
            interval: settings.interval,
            resource,
            place: place.rsplit('@').next().unwrap_or(place).to_owned(),
        })
    }

    /// The time between two messages.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// The host and port of the receiver.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Sends the metrics of a Prometheus text. An attempt takes at most the timeout of the settings. There
    /// are up to three of them, if the receiver may take the message later.
    ///
    /// # Errors
    /// If the receiver has not taken all of it. The next message has all values again.
    pub async fn export(&self, text: &str, times: Times) -> Result<(), ExportError> {
        self.export_while(text, times, |_| true).await
    }

    /// The same. After each failed attempt `again` decides whether a further one is wanted.
    ///
    /// # Errors
    /// As for [`Exporter::export`].
    pub async fn export_while(
        &self,
        text: &str,
        times: Times,
        mut again: impl FnMut(&ExportError) -> bool,
    ) -> Result<(), ExportError> {
        let message = message(text, times, &self.resource);
        let mut retries = RETRIES.into_iter();
        loop {
            let (error, wait) = match self.attempt(&message).await {
                Ok(answer) if answer.status.is_success() => return taken(&answer, self.protocol),
                Ok(answer) => {
                    let wait = answer.retry_after.unwrap_or_default();
                    let wait = may_retry(answer.status).then_some(wait);
                    (refused(&answer, self.protocol), wait)
                }
                Err(why) => (ExportError::Connection(why), Some(Duration::ZERO)),
            };
            let is_wanted = again(&error);
            let wait = wait.filter(|wait| is_wanted && *wait <= MAX_RETRY_AFTER);
            match wait.zip(retries.next()) {
                Some((asked, own)) => sleep(asked.max(own)).await,
                None => return Err(error),
            }
        }
    }

    async fn attempt(&self, message: &ExportMetricsServiceRequest) -> Result<Answer, String> {
        let (kind, body) = match self.protocol {
            Protocol::Protobuf => ("application/x-protobuf", message.encode_to_vec()),
            Protocol::Json => {
                let json = serde_json::to_vec(message);
                ("application/json", json.map_err(|error| error.to_string())?)
            }
        };
        self.client.post(kind, body.into()).await
    }
}

/// The answers after which OTLP wants a client to try again.
fn may_retry(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

fn refused(answer: &Answer, protocol: Protocol) -> ExportError {
    // In protocol buffers it is a status message, whose text is the field 2; JSON and plain text can be shown.
    let text = match (&answer.body, protocol) {
        (Some(body), Protocol::Json) => String::from_utf8_lossy(body).into_owned(),
        (Some(body), Protocol::Protobuf) => match Status::decode(body.clone()) {
            Ok(status) => status.message,
            Err(_) => String::from_utf8_lossy(body).into_owned(),
        },
        (None, _) => String::new(),
    };
    ExportError::Refused { status: answer.status.as_u16(), words: words(&text) }
}

/// What a receiver says of a message that it refuses.
#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
}

/// Whether all of a message was taken.
fn taken(answer: &Answer, protocol: Protocol) -> Result<(), ExportError> {
    let Some(body) = &answer.body else { return Ok(()) };
    let (points, text) = match protocol {
        Protocol::Protobuf => {
            let read = ExportMetricsServiceResponse::decode(body.clone()).ok();
            let partial = read.and_then(|read| read.partial_success).unwrap_or_default();
            (partial.rejected_data_points, partial.error_message)
        }
        Protocol::Json => {
            let read: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
            let partial = read.get("partialSuccess").cloned().unwrap_or_default();
            let field = |name| partial.get(name).cloned().unwrap_or_default();
            let points = field("rejectedDataPoints");
            let as_text = points.as_str().and_then(|text| text.parse().ok());
            let text = field("errorMessage").as_str().unwrap_or_default().to_owned();
            (points.as_i64().or(as_text).unwrap_or(0), text)
        }
    };
    if points > 0 { Err(ExportError::Partial { points, words: words(&text) }) } else { Ok(()) }
}

/// A receiver's words after a colon: one line, of bounded length.
fn words(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let short: String = plain.trim().chars().take(MAX_WORDS).collect();
    if short.is_empty() { short } else { format!(": {short}") }
}

#[cfg(test)]
mod tests;
