//! What the bench ran on, for the report.

use std::collections::BTreeMap;

use anyhow::Context;
use bollard::Docker;
use bollard::errors::Error;
use serde::{Deserialize, Serialize};

use super::schedule::Job;

/// The machine and its engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// CPUs that the engine may give.
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
    pub(crate) async fn ask(docker: &Docker) -> anyhow::Result<Self> {
        let info = docker.info().await.context("the engine does not tell about the machine")?;
        Ok(Self {
            cpus: info.ncpu.context("the engine does not tell how many CPUs it has")?,
            memory: info.mem_total,
            system: info.operating_system,
            kernel: info.kernel_version,
            engine: info.server_version,
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
    docker: &Docker,
    jobs: &[Job],
) -> anyhow::Result<BTreeMap<String, Option<String>>> {
    let mut images = BTreeMap::new();
    for Job { image, .. } in jobs {
        let id = match docker.inspect_image(image).await {
            Err(Error::DockerResponseServerError { status_code: 404, .. }) => None,
            found => found.with_context(|| format!("cannot look for the image {image}"))?.id,
        };
        images.insert(image.clone(), id);
    }
    Ok(images)
}
