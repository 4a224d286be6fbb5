//! Sends metrics to an OpenTelemetry receiver: OTLP over HTTP, as protocol buffers or as JSON.
//!
//! The metrics come as the text that `GET /metrics` serves, so that both have the same names and values by
//! construction. [`exposition`] reads the text, [`request`] makes the message of it, and [`Exporter`] sends
//! that as the standard `OTEL_…` variables say ([`Settings`]). The values are cumulative: a message that is
//! lost costs nothing but time, so none is kept.
//!
//! Nothing here runs by itself: who sends awaits [`Exporter::export`], which is bounded in time.

mod client;
mod exporter;
pub mod exposition;
pub mod proto;
pub mod request;
mod settings;

pub use exporter::{ExportError, Exporter};
pub use settings::{Protocol, SettingError, Settings};
