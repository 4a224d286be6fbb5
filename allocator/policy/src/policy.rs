//! What a policy is.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::decision::Decision;
use crate::frame::Frame;

/// A policy of a single node: a frame and its own state in, a decision out.
///
/// It never fails, never panics and never depends on the order of jobs in the frame.
pub trait Policy: fmt::Debug + Send {
    /// Its name, as a user gives it and as its decisions carry it.
    fn name(&self) -> &'static str;

    /// Its parameters as they are in force: those that are not given have defaults that may depend
    /// on its variant and on each other. A policy without parameters has none.
    fn params(&self) -> BTreeMap<&'static str, f64> {
        BTreeMap::new()
    }

    /// Whether it goes by the targets that jobs reach, so that it is to be asked at once when one does. Any
    /// other would see two frames close together, and take noise for news.
    fn minds_targets(&self) -> bool {
        true
    }

    /// Answers one frame. Frames come in the order of their time.
    fn decide(&mut self, frame: &Frame) -> Decision;
}

/// How closely a policy keeps to the print of its paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Variant {
    /// What a careful reader of the paper would build.
    #[default]
    Resolved,
    /// The print, mended only where it cannot run.
    Published,
}

/// A variant's name that there is not.
#[derive(Debug, thiserror::Error)]
#[error("variant {0:?} is not known: it is resolved or published")]
pub struct UnknownVariant(String);

impl FromStr for Variant {
    type Err = UnknownVariant;

    fn from_str(name: &str) -> Result<Self, UnknownVariant> {
        match name {
            "resolved" => Ok(Self::Resolved),
            "published" => Ok(Self::Published),
            _ => Err(UnknownVariant(name.to_owned())),
        }
    }
}

impl TryFrom<String> for Variant {
    type Error = UnknownVariant;

    fn try_from(name: String) -> Result<Self, UnknownVariant> {
        name.parse()
    }
}

impl From<Variant> for String {
    fn from(variant: Variant) -> Self {
        variant.to_string()
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resolved => "resolved",
            Self::Published => "published",
        })
    }
}
