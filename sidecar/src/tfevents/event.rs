//! One event: when, at which step, and the scalars in it.

use super::wire::{Content, Fields};

pub use super::wire::Malformed;

/// An event, as far as it is of interest here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event<'a> {
    /// Unix seconds; 0 if it does not say.
    pub wall_time: f64,
    /// The step; 0 is left out on the wire.
    pub step: i64,
    /// The version of the format, such as `brain.Event:2`: the first event of each file.
    pub file_version: Option<&'a str>,
    /// Training begins anew at `step`: what was told of it and of later steps no longer counts.
    pub starts: bool,
    summary: &'a [u8],
}

/// One scalar of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scalar<'a> {
    /// What it is called.
    pub tag: &'a str,
    /// The value, which may be NaN.
    pub value: f64,
}

impl<'a> Event<'a> {
    /// Decodes the data of a record. Errs on what is no message and on a time that is no number.
    pub fn read(record: &'a [u8]) -> Result<Self, Malformed> {
        let mut event =
            Self { wall_time: 0.0, step: 0, file_version: None, starts: false, summary: &[] };
        for field in Fields(record) {
            match field? {
                (1, Content::Fixed64(bytes)) => event.wall_time = f64::from_le_bytes(bytes),
                (2, Content::Varint(step)) => event.step = step.cast_signed(),
                (3, Content::Bytes(text)) => event.file_version = std::str::from_utf8(text).ok(),
                (5, Content::Bytes(summary)) => event.summary = summary,
                (7, Content::Bytes(log)) => event.starts = starts(log)?,
                _ => {}
            }
        }
        if event.wall_time.is_finite() { Ok(event) } else { Err(Malformed) }
    }

    /// Its scalars. After a malformed one nothing more comes.
    pub fn scalars(&self) -> impl Iterator<Item = Result<Scalar<'a>, Malformed>> + use<'a> {
        let mut failed = false;
        let values = Fields(self.summary).filter_map(|field| match field {
            Ok((1, Content::Bytes(value))) => scalar(value).transpose(),
            Ok(_) => None,
            Err(malformed) => Some(Err(malformed)),
        });
        values.take_while(move |value| !std::mem::replace(&mut failed, value.is_err()))
    }
}

/// Whether a `SessionLog` has the status START.
fn starts(log: &[u8]) -> Result<bool, Malformed> {
    let mut starts = false;
    for field in Fields(log) {
        if let (1, Content::Varint(status)) = field? {
            starts = status == 1;
        }
    }
    Ok(starts)
}

/// The scalar in a `Summary.Value`, if it is one.
fn scalar(value: &[u8]) -> Result<Option<Scalar<'_>>, Malformed> {
    let mut tag = None;
    // A value of 0 may be left out.
    let mut number = Some(0.0);
    let mut is_scalar = true;
    for field in Fields(value) {
        match field? {
            (1, Content::Bytes(text)) => tag = std::str::from_utf8(text).ok(),
            (2, Content::Fixed32(bytes)) => number = Some(f32::from_le_bytes(bytes).into()),
            (8, Content::Bytes(bytes)) => number = tensor(bytes)?,
            (9, Content::Bytes(metadata)) => {
                is_scalar = plugin(metadata)?.is_none_or(|name| name == b"scalars");
            }
            // A picture, a histogram, sound.
            (3..=6, _) => number = None,
            _ => {}
        }
    }
    let found = tag.zip(number).filter(|_| is_scalar);
    Ok(found.map(|(tag, value)| Scalar { tag, value }))
}

/// The name of the plugin that a value is for.
fn plugin(metadata: &[u8]) -> Result<Option<&[u8]>, Malformed> {
    let mut name = None;
    for field in Fields(metadata) {
        if let (1, Content::Bytes(data)) = field? {
            for field in Fields(data) {
                if let (1, Content::Bytes(bytes)) = field? {
                    name = Some(bytes);
                }
            }
        }
    }
    Ok(name)
}

const FLOAT: u64 = 1;
const DOUBLE: u64 = 2;

/// The number in a tensor, if it is a real one and the only one.
fn tensor(tensor: &[u8]) -> Result<Option<f64>, Malformed> {
    let mut kind = 0;
    let mut count = 0_u32;
    let mut number = 0.0;
    let mut take = |value: f64| {
        number = value;
        count = count.saturating_add(1);
    };
    let mut content: &[u8] = &[];
    for field in Fields(tensor) {
        match field? {
            (1, Content::Varint(dtype)) => kind = dtype,
            (4, Content::Bytes(bytes)) => content = bytes,
            (5, Content::Fixed32(bytes)) => take(f32::from_le_bytes(bytes).into()),
            (5, Content::Bytes(packed)) => floats(packed, &mut take),
            (6, Content::Fixed64(bytes)) => take(f64::from_le_bytes(bytes)),
            (6, Content::Bytes(packed)) => doubles(packed, &mut take),
            _ => {}
        }
    }
    match kind {
        FLOAT => floats(content, &mut take),
        DOUBLE => doubles(content, &mut take),
        _ => return Ok(None),
    }
    Ok((count <= 1).then_some(number))
}

fn floats(packed: &[u8], take: &mut dyn FnMut(f64)) {
    packed.as_chunks().0.iter().for_each(|bytes| take(f32::from_le_bytes(*bytes).into()));
}

fn doubles(packed: &[u8], take: &mut dyn FnMut(f64)) {
    packed.as_chunks().0.iter().for_each(|bytes| take(f64::from_le_bytes(*bytes)));
}

#[cfg(test)]
mod tests;
