//! Requests that pass through to a job: only reads, and only those that its page needs.

use hyper::Uri;

use crate::address::Address;
use crate::client::{self, Failure, MAX_HISTORY_BYTES, MAX_PROGRESS_BYTES};
use crate::serve::reply::Reply;

/// The content type of events.
pub(super) const EVENTS: &str = "text/event-stream";
pub(super) const JSON: &str = "application/json";
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What is read of a job. Its content type is ours: a job cannot send a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Read {
    Progress,
    /// With the Unix time after which points are wanted.
    History(Option<String>),
    Events,
    Metrics,
}

/// Why nothing is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    UnknownPath,
    /// Its value.
    InvalidAfter(String),
}

impl Read {
    /// What a path below the job's asks for.
    pub(super) fn find(path: &str, uri: &Uri) -> Result<Self, Refusal> {
        match path {
            "v1/progress" => Ok(Self::Progress),
            "v1/history" => {
                let query = uri.query().unwrap_or_default();
                let after = query.split('&').find_map(|one| one.strip_prefix("after="));
                let is_time = |text: &str| text.parse::<f64>().is_ok_and(f64::is_finite);
                match after {
                    Some(text) if is_time(text) => Ok(Self::History(Some(text.to_owned()))),
                    Some(text) => Err(Refusal::InvalidAfter(text.to_owned())),
                    None => Ok(Self::History(None)),
                }
            }
            "v1/events" => Ok(Self::Events),
            "metrics" => Ok(Self::Metrics),
            _ => Err(Refusal::UnknownPath),
        }
    }

    pub(super) fn content_type(&self) -> &'static str {
        match self {
            Self::Progress | Self::History(_) => JSON,
            Self::Events => EVENTS,
            Self::Metrics => METRICS,
        }
    }

    /// Reads it from the job.
    pub(super) async fn of(self, address: &Address) -> Result<Reply, Failure> {
        let (path, most) = match self {
            Self::Events => return client::open(address, "/v1/events").await.map(Reply::events),
            Self::Progress => ("/v1/progress".to_owned(), MAX_PROGRESS_BYTES),
            Self::History(None) => ("/v1/history".to_owned(), MAX_HISTORY_BYTES),
            Self::History(Some(after)) => (format!("/v1/history?after={after}"), MAX_HISTORY_BYTES),
            Self::Metrics => ("/metrics".to_owned(), MAX_HISTORY_BYTES),
        };
        client::get(address, &path, most).await.map(Reply::text)
    }
}
