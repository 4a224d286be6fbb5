//! The messages of OTLP's `metrics_service.proto`, as far as they are sent and read.
//!
//! The same types are written as protocol buffers and as JSON. The JSON of OTLP has names in camel case
//! and 64-bit numbers as text.

use prost::{Message, Oneof};
use serde::{Serialize, Serializer};

/// Values are counted from the start of the process.
pub const CUMULATIVE: i32 = 2;

/// The body of a request.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportMetricsServiceRequest {
    /// One for each sender.
    #[prost(message, repeated, tag = "1")]
    pub resource_metrics: Vec<ResourceMetrics>,
}

/// The metrics of one sender.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceMetrics {
    /// Who sends.
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    /// One for each library.
    #[prost(message, repeated, tag = "2")]
    pub scope_metrics: Vec<ScopeMetrics>,
}

/// Who sends.
#[derive(Clone, PartialEq, Message, Serialize)]
pub struct Resource {
    /// Such as `service.name`.
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

/// The metrics of one library.
#[derive(Clone, PartialEq, Message, Serialize)]
pub struct ScopeMetrics {
    /// The library.
    #[prost(message, optional, tag = "1")]
    pub scope: Option<InstrumentationScope>,
    /// Its metrics.
    #[prost(message, repeated, tag = "2")]
    pub metrics: Vec<Metric>,
}

/// A library.
#[derive(Clone, PartialEq, Message, Serialize)]
pub struct InstrumentationScope {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its version.
    #[prost(string, tag = "2")]
    pub version: String,
}

/// A metric.
#[derive(Clone, PartialEq, Message, Serialize)]
pub struct Metric {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its help text.
    #[prost(string, tag = "2")]
    pub description: String,
    /// Its unit, in UCUM.
    #[prost(string, tag = "3")]
    pub unit: String,
    /// Its values.
    #[prost(oneof = "Data", tags = "5, 7, 9")]
    #[serde(flatten)]
    pub data: Option<Data>,
}

/// The values of a metric.
#[derive(Clone, PartialEq, Oneof, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Data {
    /// Values that rise and fall.
    #[prost(message, tag = "5")]
    Gauge(Gauge),
    /// Values that only grow.
    #[prost(message, tag = "7")]
    Sum(Sum),
    /// Counts between bounds.
    #[prost(message, tag = "9")]
    Histogram(Histogram),
}

/// Values that rise and fall.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gauge {
    /// One for each set of labels.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<NumberDataPoint>,
}

/// Values that only grow.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sum {
    /// One for each set of labels.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<NumberDataPoint>,
    /// [`CUMULATIVE`].
    #[prost(int32, tag = "2")]
    pub aggregation_temporality: i32,
    /// Whether it only grows.
    #[prost(bool, tag = "3")]
    pub is_monotonic: bool,
}

/// Counts between bounds.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Histogram {
    /// One for each set of labels.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<HistogramDataPoint>,
    /// [`CUMULATIVE`].
    #[prost(int32, tag = "2")]
    pub aggregation_temporality: i32,
}

/// A value. Times are Unix nanoseconds.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NumberDataPoint {
    /// The labels.
    #[prost(message, repeated, tag = "7")]
    pub attributes: Vec<KeyValue>,
    /// Since when it is counted.
    #[prost(fixed64, tag = "2")]
    #[serde(serialize_with = "as_text")]
    pub start_time_unix_nano: u64,
    /// When it was read.
    #[prost(fixed64, tag = "3")]
    #[serde(serialize_with = "as_text")]
    pub time_unix_nano: u64,
    /// The number.
    #[prost(oneof = "Number", tags = "4")]
    #[serde(flatten)]
    pub value: Option<Number>,
}

/// A number.
#[derive(Clone, Copy, PartialEq, Oneof, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Number {
    /// A finite number.
    #[prost(double, tag = "4")]
    AsDouble(f64),
}

/// Counts between bounds. Times are Unix nanoseconds.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HistogramDataPoint {
    /// The labels.
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
    /// Since when it is counted.
    #[prost(fixed64, tag = "2")]
    #[serde(serialize_with = "as_text")]
    pub start_time_unix_nano: u64,
    /// When it was read.
    #[prost(fixed64, tag = "3")]
    #[serde(serialize_with = "as_text")]
    pub time_unix_nano: u64,
    /// The number of all values.
    #[prost(fixed64, tag = "4")]
    #[serde(serialize_with = "as_text")]
    pub count: u64,
    /// Their sum.
    #[prost(double, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum: Option<f64>,
    /// The counts between the bounds: one more than there are bounds.
    #[prost(fixed64, repeated, tag = "6")]
    #[serde(serialize_with = "as_texts")]
    pub bucket_counts: Vec<u64>,
    /// The bounds, rising.
    #[prost(double, repeated, tag = "7")]
    pub explicit_bounds: Vec<f64>,
}

/// A name with a value.
#[derive(Clone, PartialEq, Message, Serialize)]
pub struct KeyValue {
    /// The name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// The value.
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

/// A value, which is always a text here.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AnyValue {
    /// The text.
    #[prost(string, tag = "1")]
    pub string_value: String,
}

/// The answer of a receiver.
#[derive(Clone, PartialEq, Message)]
pub struct ExportMetricsServiceResponse {
    /// What it did not take.
    #[prost(message, optional, tag = "1")]
    pub partial_success: Option<PartialSuccess>,
}

/// What a receiver did not take.
#[derive(Clone, PartialEq, Message)]
pub struct PartialSuccess {
    /// The number of refused values.
    #[prost(int64, tag = "1")]
    pub rejected_data_points: i64,
    /// Why.
    #[prost(string, tag = "2")]
    pub error_message: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn as_text<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

fn as_texts<S: Serializer>(numbers: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(numbers.iter().map(u64::to_string))
}
