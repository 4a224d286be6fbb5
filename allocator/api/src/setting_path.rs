//! Paths in files of settings.

use std::path::PathBuf;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// Reads the path of a setting. An empty one names nothing, and is refused as on a command line.
///
/// # Errors
/// The value is empty, or not a text.
pub fn non_empty<'de, D>(deserializer: D) -> Result<Option<PathBuf>, D::Error>
where
    D: Deserializer<'de>,
{
    let path = PathBuf::deserialize(deserializer)?;
    if path.as_os_str().is_empty() {
        return Err(D::Error::custom("expected a path, for example /srv/paceline"));
    }
    Ok(Some(path))
}
