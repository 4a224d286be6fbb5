//! The messages of TensorFlow's `event.proto`, `summary.proto` and `tensor.proto`, as far as they are
//! read. A decoder skips all other fields.
//!
//! Texts are bytes: a name that is not UTF-8 makes its own value unreadable, not the whole event.

use prost::{Message, Oneof};

#[derive(Clone, PartialEq, Message)]
pub(super) struct Event {
    /// Unix seconds.
    #[prost(double, tag = "1")]
    pub(super) wall_time: f64,
    #[prost(int64, tag = "2")]
    pub(super) step: i64,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub(super) file_version: Option<Vec<u8>>,
    #[prost(message, optional, tag = "5")]
    pub(super) summary: Option<Summary>,
    #[prost(message, optional, tag = "7")]
    pub(super) session_log: Option<SessionLog>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SessionLog {
    #[prost(int32, tag = "1")]
    pub(super) status: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Summary {
    #[prost(message, repeated, tag = "1")]
    pub(super) value: Vec<Value>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Value {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub(super) tag: Option<Vec<u8>>,
    #[prost(message, optional, tag = "9")]
    pub(super) metadata: Option<Metadata>,
    #[prost(oneof = "Content", tags = "2, 3, 4, 5, 6, 8")]
    pub(super) content: Option<Content>,
}

/// A number, or something that has none: it is not decoded, so that its defects are of no matter.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Content {
    #[prost(float, tag = "2")]
    Simple(f32),
    #[prost(bytes, tag = "3")]
    OldHistogram(Vec<u8>),
    #[prost(bytes, tag = "4")]
    Image(Vec<u8>),
    #[prost(bytes, tag = "5")]
    Histogram(Vec<u8>),
    #[prost(bytes, tag = "6")]
    Audio(Vec<u8>),
    #[prost(message, tag = "8")]
    Tensor(Tensor),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Metadata {
    #[prost(message, optional, tag = "1")]
    pub(super) plugin_data: Option<PluginData>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PluginData {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) plugin_name: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Tensor {
    #[prost(int32, tag = "1")]
    pub(super) dtype: i32,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) content: Vec<u8>,
    #[prost(float, repeated, tag = "5")]
    pub(super) float_val: Vec<f32>,
    #[prost(double, repeated, tag = "6")]
    pub(super) double_val: Vec<f64>,
}
