//! The machine that the bench ran on, for the report.

use std::collections::BTreeMap;

use anyhow::Context;
use paceline_runtime::Runtime;
use serde::{Deserialize, Serialize};

use super::schedule::Job;

/// The machine and its engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// The number of CPUs that the engine may use.
    pub(crate) cpus: i64,
    /// Memory in bytes.
    pub(crate) memory: Option<i64>,
    /// The operating system's name.
    pub(crate) system: Option<String>,
    /// The kernel's release.
    pub(crate) kernel: Option<String>,
    /// The engine's version.
    pub(crate) engine: Option<String>,
}

impl Machine {
    /// Asks the engine.
    pub(crate) async fn ask(runtime: &Runtime) -> anyhow::Result<Self> {
        let info = runtime.describe().await.context("cannot ask the engine about the machine")?;
        Ok(Self {
            cpus: info.cpus.context("the engine does not report its number of CPUs")?,
            memory: info.memory,
            system: info.system,
            kernel: info.kernel,
            engine: info.version,
        })
    }

    /// In a few words, for people.
    pub(crate) fn words(&self) -> String {
        let mut words = vec![format!("{} CPUs", self.cpus)];
        if let Some(bytes) = self.memory {
            words.push(format!("{} MiB of memory", bytes / (1 << 20)));
        }
        words.extend(self.system.clone());
        words.extend(self.kernel.as_ref().map(|kernel| format!("kernel {kernel}")));
        words.extend(self.engine.as_ref().map(|engine| format!("engine {engine}")));
        words.join(", ")
    }
}

/// The id of the image of each of `jobs`; `None` where the engine lacks it.
pub(crate) async fn images(
    runtime: &Runtime,
    jobs: &[Job],
) -> anyhow::Result<BTreeMap<String, Option<String>>> {
    let mut images = BTreeMap::new();
    for Job { image, .. } in jobs {
        let found = runtime.image(image).await;
        let id = found.with_context(|| format!("cannot look for the image {image}"))?;
        images.insert(image.clone(), id);
    }
    Ok(images)
}
