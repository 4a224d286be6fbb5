//! The two variants of a paper's policy.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How closely a policy follows its paper as printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(
        description = "How closely a policy follows its paper: with our corrections, or as printed.",
        extend("enum" = ["resolved", "published"])
    )
)]
pub enum Variant {
    /// The paper with its errors and gaps corrected.
    #[default]
    Resolved,
    /// The paper as printed, corrected only where it cannot run.
    Published,
}

/// An unknown name of a variant.
#[derive(Debug, thiserror::Error)]
#[error("invalid variant {0:?}: expected resolved or published")]
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
