//! Values of options: what is empty or 0 says nothing, and is refused.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, StringValueParser, TypedValueParser};

/// A text that is not empty.
pub(super) fn text() -> impl TypedValueParser<Value = String> {
    StringValueParser::new().try_map(|text| {
        let is_blank = text.trim().is_empty();
        if is_blank { Err("expected a text that is not empty") } else { Ok(text) }
    })
}

/// A path that is not empty.
pub(super) fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|text: OsString| {
        if text.is_empty() { Err("expected a path that is not empty") } else { Ok(text.into()) }
    })
}

/// A whole number from 1 on.
pub(super) fn count(text: &str) -> Result<u64, &'static str> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or("expected a whole number from 1 on, for example 100")
}

/// A loss.
pub(super) fn loss(text: &str) -> Result<f64, &'static str> {
    let loss = text.parse().ok().filter(|loss: &f64| loss.is_finite());
    loss.ok_or("expected a finite number, for example 0.5")
}

/// A time.
pub(super) fn seconds(text: &str) -> Result<f64, &'static str> {
    let seconds = text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds > 0.0);
    seconds.ok_or("expected a number of seconds above 0, for example 0.25")
}
