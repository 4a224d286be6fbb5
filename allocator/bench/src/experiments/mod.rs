//! EXPERIMENTS.md: the results of several benches as one page.

mod page;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use paceline_api::bounded;
use paceline_api::usage::BadUsage;
use paceline_policy::policies::Paceline;

use super::outcome::{Findings, ORACLE};
use super::report::{PICTURES, RESULT, clear};
use crate::text::blocks::markdown;

/// The folder of the pictures, beside the page.
const FOLDER: &str = "experiments";

/// Writes the page of the benches in `results` to `output`, and their pictures beside it. Unreadable
/// results are left out, and the error names them.
pub(crate) fn write(
    results: &[PathBuf],
    output: &Path,
    commit: Option<&str>,
) -> anyhow::Result<()> {
    let (mut all, mut unusable) = (Vec::new(), Vec::new());
    for folder in results {
        match read(folder) {
            Ok(findings) => all.push((folder, findings)),
            Err(BadUsage(why)) => unusable.push(why),
        }
    }
    if !all.is_empty() {
        write_page(&all, output, commit)?;
    }
    if unusable.is_empty() { Ok(()) } else { Err(BadUsage(unusable.join("\n")).into()) }
}

fn write_page(
    all: &[(&PathBuf, Findings)],
    output: &Path,
    commit: Option<&str>,
) -> anyhow::Result<()> {
    for (folder, findings) in all {
        let to = output.with_file_name(FOLDER).join(&findings.about.name);
        clear(&to)?;
        fs::create_dir_all(&to).with_context(|| format!("cannot create {}", to.display()))?;
        for (_, file) in page::pictures(findings) {
            let from = folder.join(PICTURES).join(&file);
            // A run whose jobs report no loss has no picture of losses.
            if from.exists() {
                fs::copy(&from, to.join(&file))
                    .with_context(|| format!("cannot copy {}", from.display()))?;
            }
        }
    }
    let findings: Vec<&Findings> = all.iter().map(|(_, findings)| findings).collect();
    let there =
        |name: &str, file: &str| output.with_file_name(FOLDER).join(name).join(file).exists();
    let text = markdown(&page::page(&findings, commit, there));
    fs::write(output, text).with_context(|| format!("cannot write {}", output.display()))
}

/// The findings of one bench.
fn read(folder: &Path) -> Result<Findings, BadUsage> {
    let path = folder.join(RESULT);
    let unusable = |why: &dyn std::fmt::Display| {
        BadUsage(format!("cannot read {}: {why}; `paceline bench` writes it", path.display()))
    };
    let text = bounded::RESULT.read(&path).map_err(|error| unusable(&error))?;
    serde_json::from_str(&text).map_err(|error| unusable(&error))
}

/// The arms whose pictures are shown: the baseline, the arm that is compared with the paper, `paceline`
/// and the oracle.
fn shown(findings: &Findings) -> Vec<&str> {
    let baseline = findings.baseline().map(|arm| arm.facts.name.as_str());
    let claimed = findings.claims.iter().filter_map(|claim| claim.arm.as_deref());
    let first = findings.arms.iter().map(|arm| arm.facts.name.as_str());
    let subject = claimed.chain(first).find(|name| Some(*name) != baseline);
    let of_policy = |policy: &str| {
        let arm = findings.arms.iter().find(|arm| arm.facts.policy == policy)?;
        Some(arm.facts.name.as_str()).filter(|name| Some(*name) != subject)
    };
    [baseline, subject, of_policy(Paceline::NAME), of_policy(ORACLE)]
        .into_iter()
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests;
