use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The name that identifies a job across frames. Never empty, cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(description = "The name that identifies a job.", extend("minLength" = 1))
)]
pub struct JobId(Arc<str>);

/// The id of a job is empty.
#[derive(Debug, thiserror::Error)]
#[error("invalid job id \"\": expected at least one character")]
pub struct EmptyId;

impl JobId {
    /// Checks and wraps `name`.
    pub fn new(name: impl Into<String>) -> Result<Self, EmptyId> {
        let name = name.into();
        if name.is_empty() { Err(EmptyId) } else { Ok(Self(name.into())) }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for JobId {
    type Error = EmptyId;

    fn try_from(name: String) -> Result<Self, EmptyId> {
        Self::new(name)
    }
}

impl From<JobId> for String {
    fn from(id: JobId) -> Self {
        id.0.as_ref().to_owned()
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
