//! What the calibration recorded: each job alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context;
use paceline_sim::fit::Recording;

use super::super::outcome::frames;

/// Where it says how fast the machine was with each job.
const FILE: &str = "speeds.json";

/// Jobs, one after the other, each with the machine for itself.
#[derive(Clone, Debug)]
pub(crate) struct Solo {
    pub(crate) recording: Recording,
    /// How fast the machine was with each job, in the [probe](super::super::probe)'s passes in a second
    /// of CPU time.
    pub(crate) speeds: BTreeMap<String, f64>,
}

impl Solo {
    /// What lies in the calibration's folder; `None` if there are no frames that can be used. Of a
    /// calibration that was made without a probe, no speed is known.
    pub(crate) fn read(folder: &Path) -> Option<Self> {
        let speeds = fs::read(folder.join(FILE)).ok();
        let speeds = speeds.and_then(|text| serde_json::from_slice(&text).ok());
        Some(Self { recording: frames(folder).ok()?, speeds: speeds.unwrap_or_default() })
    }
}

/// Writes the machine's speeds beside the frames.
pub(super) fn write(speeds: &BTreeMap<String, f64>, folder: &Path) -> anyhow::Result<()> {
    let path = folder.join(FILE);
    fs::write(&path, serde_json::to_vec_pretty(speeds)?)
        .with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_what_cannot_be_is_not_known() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Solo::read(folder.path()).is_none());
        let frame = r#"{"t":1,"nodes":[],"jobs":[{"id":"vae"}]}"#;
        fs::write(folder.path().join("frames.jsonl"), frame).unwrap();
        assert_eq!(Solo::read(folder.path()).unwrap().speeds, BTreeMap::new());
        let speeds = BTreeMap::from([("vae".to_owned(), 8e4)]);
        write(&speeds, folder.path()).unwrap();
        assert_eq!(Solo::read(folder.path()).unwrap().speeds, speeds);
        fs::write(folder.path().join(FILE), "[").unwrap();
        assert_eq!(Solo::read(folder.path()).unwrap().speeds, BTreeMap::new());
    }
}
