//! The standard variables of OpenTelemetry's exporters.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use hyper::Uri;
use hyper::header::{HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;

/// Where receivers listen by default.
const DEFAULT_ENDPOINT: &str = "http://localhost:4318";
/// The time for one request.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// The time between two requests.
const DEFAULT_INTERVAL: Duration = Duration::from_mins(1);
/// The least time between two requests.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// The longest time that a variable may give: a day.
const MAX_TIME: Duration = Duration::from_hours(24);

/// How a message is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// As protocol buffers: `http/protobuf`.
    Protobuf,
    /// As JSON: `http/json`.
    Json,
}

/// Why a setting cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// A variable has an invalid value.
    #[error("invalid {name} \"{value}\": expected {expected}")]
    Invalid {
        /// The variable.
        name: &'static str,
        /// Its value, or a part of it without secrets.
        value: String,
        /// What is allowed.
        expected: &'static str,
    },
    /// A file of a variable cannot be used.
    #[error("cannot read {name} {}: {cause}", path.display())]
    File {
        /// The variable.
        name: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        cause: String,
    },
    /// No certificate is known by which an `https` receiver could be verified.
    #[error(
        "cannot verify an https receiver: the system has no certificates ({0}); set \
         OTEL_EXPORTER_OTLP_CERTIFICATE to a file in PEM"
    )]
    NoRoots(String),
}

/// Where, how and how often metrics are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The address of a receiver's metrics.
    pub endpoint: Uri,
    /// Further headers of each request. Their values are marked as secret.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The time for one request.
    pub timeout: Duration,
    /// How a message is written.
    pub protocol: Protocol,
    /// The certificates in PEM by which a receiver is verified, in place of the system's.
    pub certificate: Option<PathBuf>,
    /// This client's certificate and key, in PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The time between two messages.
    pub interval: Duration,
    /// What identifies the sender, before its own attributes.
    pub resource: Vec<(String, String)>,
}

impl Settings {
    /// Reads the variables; `None` if one of them switches metrics off. A variable for metrics alone comes
    /// before the one for all signals, and an empty one counts as unset.
    ///
    /// # Errors
    /// If a value is invalid.
    pub fn from_env(
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Option<Self>, SettingError> {
        let env = Environment(&variable);
        let is = |name, word: &str| {
            env.read(name).map(|text| text.is_some_and(|text| text.eq_ignore_ascii_case(word)))
        };
        if is("OTEL_SDK_DISABLED", "true")? || is("OTEL_METRICS_EXPORTER", "none")? {
            return Ok(None);
        }
        let timeout =
            env.first(["OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"])?;
        let certificate =
            env.path(["OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE"])?;
        let interval = "OTEL_METRIC_EXPORT_INTERVAL";
        let interval = env.read(interval)?.map(|text| time(interval, &text, MIN_INTERVAL));
        Ok(Some(Self {
            endpoint: env.endpoint()?,
            headers: env.headers()?,
            timeout: timeout
                .map(|(name, text)| time(name, &text, Duration::from_millis(1)))
                .transpose()?
                .unwrap_or(DEFAULT_TIMEOUT),
            protocol: env.protocol()?,
            certificate,
            identity: env.identity()?,
            interval: interval.transpose()?.unwrap_or(DEFAULT_INTERVAL),
            resource: env.resource()?,
        }))
    }
}

/// The variables.
struct Environment<'v>(&'v dyn Fn(&str) -> Option<OsString>);

impl Environment<'_> {
    fn read(&self, name: &'static str) -> Result<Option<String>, SettingError> {
        match (self.0)(name).map(OsString::into_string) {
            None => Ok(None),
            Some(Ok(text)) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
            Some(Err(raw)) => Err(invalid(name, raw.to_string_lossy(), "UTF-8 text")),
        }
    }

    /// The first variable that is set, with its name.
    fn first(
        &self,
        names: [&'static str; 2],
    ) -> Result<Option<(&'static str, String)>, SettingError> {
        for name in names {
            if let Some(text) = self.read(name)? {
                return Ok(Some((name, text)));
            }
        }
        Ok(None)
    }

    fn path(&self, names: [&'static str; 2]) -> Result<Option<PathBuf>, SettingError> {
        Ok(self.first(names)?.map(|(_, text)| text.into()))
    }

    /// The address for metrics is used as it is; the one for all signals is extended by a path.
    fn endpoint(&self) -> Result<Uri, SettingError> {
        let own = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT";
        if let Some(text) = self.read(own)? {
            return address(own, &text, &text);
        }
        let all = "OTEL_EXPORTER_OTLP_ENDPOINT";
        let text = self.read(all)?.unwrap_or_else(|| DEFAULT_ENDPOINT.to_owned());
        let extended = format!("{}/v1/metrics", text.trim_end_matches('/'));
        address(all, &text, &extended)
    }

    fn headers(&self) -> Result<Vec<(HeaderName, HeaderValue)>, SettingError> {
        let names = ["OTEL_EXPORTER_OTLP_METRICS_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"];
        let Some((name, text)) = self.first(names)? else { return Ok(Vec::new()) };
        // The message has no value, which is often a secret.
        let refuse =
            |key: &str| invalid(name, key, "names with values, for example api-key=1234,tenant=a");
        let header = |pair: &str| {
            let (key, value) = pair.split_once('=').ok_or_else(|| refuse(""))?;
            let key = key.trim();
            let header = key.parse().map_err(|_| refuse(key))?;
            let mut value: HeaderValue = decoded(value).parse().map_err(|_| refuse(key))?;
            value.set_sensitive(true);
            Ok((header, value))
        };
        pairs(&text).map(header).collect()
    }

    fn protocol(&self) -> Result<Protocol, SettingError> {
        let names = ["OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
        match self.first(names)? {
            None => Ok(Protocol::Protobuf),
            Some((name, text)) => match text.as_str() {
                "http/protobuf" => Ok(Protocol::Protobuf),
                "http/json" => Ok(Protocol::Json),
                _ => {
                    let expected = "http/protobuf or http/json, because gRPC is not supported; \
                                    receivers take HTTP on port 4318";
                    Err(invalid(name, text, expected))
                }
            },
        }
    }

    fn identity(&self) -> Result<Option<(PathBuf, PathBuf)>, SettingError> {
        let certificate = self.path([
            "OTEL_EXPORTER_OTLP_METRICS_CLIENT_CERTIFICATE",
            "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
        ])?;
        let key =
            self.path(["OTEL_EXPORTER_OTLP_METRICS_CLIENT_KEY", "OTEL_EXPORTER_OTLP_CLIENT_KEY"])?;
        Ok(certificate.zip(key))
    }

    fn resource(&self) -> Result<Vec<(String, String)>, SettingError> {
        let name = "OTEL_RESOURCE_ATTRIBUTES";
        let text = self.read(name)?.unwrap_or_default();
        let attribute = |pair: &str| {
            let (key, value) = pair.split_once('=').ok_or_else(|| {
                invalid(name, pair, "names with values, for example team=vision,region=eu")
            })?;
            Ok((key.trim().to_owned(), decoded(value)))
        };
        let mut all: Vec<_> = pairs(&text).map(attribute).collect::<Result<_, _>>()?;
        if let Some(service) = self.read("OTEL_SERVICE_NAME")? {
            all.retain(|(key, _)| key != "service.name");
            all.insert(0, ("service.name".to_owned(), service));
        }
        Ok(all)
    }
}

/// The pairs of a list with commas. A comma at the end is allowed.
fn pairs(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|pair| !pair.is_empty())
}

/// A value of a list, in which other characters are written as percent signs with their codes.
fn decoded(text: &str) -> String {
    percent_decode_str(text.trim()).decode_utf8_lossy().into_owned()
}

/// Parses `extended`; an error names what was `given`.
fn address(name: &'static str, given: &str, extended: &str) -> Result<Uri, SettingError> {
    let parsed: Option<Uri> = extended.parse().ok();
    let is_url = |uri: &Uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.host().is_some_and(|host| !host.is_empty())
    };
    let expected = "an address of http or https, for example http://localhost:4318";
    // A user and a password before the host do not belong to the message.
    let shown = given.rsplit('@').next().unwrap_or(given);
    parsed.filter(is_url).ok_or_else(|| invalid(name, shown, expected))
}

/// A time in milliseconds.
fn time(name: &'static str, text: &str, min: Duration) -> Result<Duration, SettingError> {
    let time = text.parse().ok().map(Duration::from_millis);
    let allowed = time.filter(|time| (min..=MAX_TIME).contains(time));
    let expected = if min > Duration::from_millis(1) {
        "milliseconds from 100 to 86400000, for example 10000"
    } else {
        "milliseconds from 1 to 86400000, for example 10000"
    };
    allowed.ok_or_else(|| invalid(name, text, expected))
}

fn invalid(name: &'static str, value: impl Into<String>, expected: &'static str) -> SettingError {
    SettingError::Invalid { name, value: value.into(), expected }
}

#[cfg(test)]
mod tests;
