//! One event: its time, its step, and its scalars.

use prost::Message;

use super::proto::{self, Content};

/// The status of a session that starts.
const START: i32 = 1;
/// Tensors of 32-bit numbers.
const FLOAT: i32 = 1;
/// Tensors of 64-bit numbers.
const DOUBLE: i32 = 2;

/// A record that is not an event.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Malformed {
    /// It is not a message of the format.
    #[error("invalid event: {0}")]
    Message(#[from] prost::DecodeError),
    /// Its time is not finite.
    #[error("invalid wall time {0}: expected Unix seconds")]
    Time(f64),
}

/// An event, without unused fields.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Unix seconds; 0 if missing.
    pub wall_time: f64,
    /// The step; 0 is left out on the wire.
    pub step: i64,
    /// The version of the format, such as `brain.Event:2`: the first event of each file.
    pub file_version: Option<String>,
    /// The training restarts at `step`: earlier values of this and later steps are obsolete.
    pub starts: bool,
    /// Its scalars, in order.
    pub scalars: Vec<Scalar>,
}

/// One scalar of an event.
#[derive(Clone, Debug, PartialEq)]
pub struct Scalar {
    /// Its name.
    pub tag: String,
    /// The value, which may be NaN.
    pub value: f64,
}

impl Event {
    /// Decodes the data of a record. Fails on an invalid message or a time that is not finite.
    pub fn read(record: &[u8]) -> Result<Self, Malformed> {
        let event = proto::Event::decode(record)?;
        if !event.wall_time.is_finite() {
            return Err(Malformed::Time(event.wall_time));
        }
        let values = event.summary.unwrap_or_default().value;
        Ok(Self {
            wall_time: event.wall_time,
            step: event.step,
            file_version: event.file_version.and_then(|text| String::from_utf8(text).ok()),
            starts: event.session_log.is_some_and(|log| log.status == START),
            scalars: values.into_iter().filter_map(scalar).collect(),
        })
    }
}

/// The scalar in a value, if it is one.
fn scalar(value: proto::Value) -> Option<Scalar> {
    let plugin = value.metadata.and_then(|metadata| metadata.plugin_data);
    if plugin.is_some_and(|plugin| !matches!(plugin.plugin_name.as_slice(), b"" | b"scalars")) {
        return None;
    }
    let number = match value.content {
        // A value of 0 may be left out.
        None => 0.0,
        Some(Content::Simple(number)) => number.into(),
        Some(Content::Tensor(tensor)) => single(&tensor)?,
        Some(
            Content::OldHistogram(_)
            | Content::Image(_)
            | Content::Histogram(_)
            | Content::Audio(_),
        ) => return None,
    };
    Some(Scalar { tag: String::from_utf8(value.tag?).ok()?, value: number })
}

/// The number in a tensor, if it is a real one and the only one.
fn single(tensor: &proto::Tensor) -> Option<f64> {
    let content = &tensor.content;
    let numbers: Vec<f64> = match tensor.dtype {
        FLOAT => {
            let packed = content.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
            tensor.float_val.iter().copied().chain(packed).take(2).map(f64::from).collect()
        }
        DOUBLE => {
            let packed = content.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes));
            tensor.double_val.iter().copied().chain(packed).take(2).collect()
        }
        _ => return None,
    };
    match numbers[..] {
        [] => Some(0.0),
        [number] => Some(number),
        [_, _, ..] => None,
    }
}

#[cfg(test)]
mod tests;
