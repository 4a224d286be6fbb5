//! What the bench ran on, for the report.

use anyhow::Context;
use bollard::Docker;
use serde::{Deserialize, Serialize};

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
