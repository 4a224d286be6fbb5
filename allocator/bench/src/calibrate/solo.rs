//! What the calibration recorded of each job alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context;
use paceline_api::bounded;
use paceline_sim::fit::Recording;

use super::super::outcome::frames;

/// The file with the machine's speed during each job's calibration.
const FILE: &str = "speeds.json";

/// Jobs run one after the other, each alone on the machine.
#[derive(Clone, Debug)]
pub(crate) struct SoloRun {
    pub(crate) recording: Recording,
    /// The machine's speed during each job, in the [probe](super::super::probe)'s passes per second of
    /// CPU time.
    pub(crate) speeds: BTreeMap<String, f64>,
}

impl SoloRun {
    /// Reads the calibration's folder; `None` without usable frames. The speeds are empty if the
    /// calibration was made without a probe.
    pub(crate) fn read(folder: &Path) -> Option<Self> {
        let speeds = bounded::RESULT.read(&folder.join(FILE)).ok();
        let speeds = speeds.and_then(|text| serde_json::from_str(&text).ok());
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
    fn written_speeds_are_read_back_and_unreadable_ones_ignored() {
        let folder = tempfile::tempdir().unwrap();
        assert!(SoloRun::read(folder.path()).is_none());
        let frame = r#"{"t":1,"nodes":[],"jobs":[{"id":"vae"}]}"#;
        fs::write(folder.path().join("frames.jsonl"), frame).unwrap();
        assert_eq!(SoloRun::read(folder.path()).unwrap().speeds, BTreeMap::new());
        let speeds = BTreeMap::from([("vae".to_owned(), 8e4)]);
        write(&speeds, folder.path()).unwrap();
        assert_eq!(SoloRun::read(folder.path()).unwrap().speeds, speeds);
        fs::write(folder.path().join(FILE), "[").unwrap();
        assert_eq!(SoloRun::read(folder.path()).unwrap().speeds, BTreeMap::new());
    }
}
