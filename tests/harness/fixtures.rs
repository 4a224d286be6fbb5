//! What the tests on a real engine share: images of the programs under test, and a Swarm. The
//! program `test-fixtures` makes them once for all processes of a test run. A test process that
//! runs without it makes its own.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use bollard::Docker;
use bollard::query_parameters::RemoveImageOptionsBuilder;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::image::{image_of, program};
use crate::needs::Needs;
use crate::swarm::{PrivateSwarm, SwarmAddress};

/// The variable with the path of the file that describes the fixtures of a run.
pub const VARIABLE: &str = "PACELINE_TEST_FIXTURES";

/// The image of the toy job on every machine of a Swarm.
pub const SWARM_JOB: &str = "paceline-test/toy-job:swarm";
/// The image of the allocator on every machine of a Swarm.
pub const SWARM_ALLOCATOR: &str = "paceline-test/allocator:swarm";

/// Workers of a test's Swarm.
const WORKERS: usize = 2;

/// Names of what the tests of one run share.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Fixtures {
    /// The image of the toy job and the sidecar.
    pub toy: String,
    /// The allocator's image.
    pub allocator: String,
    /// The Swarm, if it was made beforehand.
    pub swarm: Option<SwarmAddress>,
}

/// A Swarm for one test.
#[derive(Debug)]
pub struct TestSwarm {
    swarm: Arc<PrivateSwarm>,
    /// Held while a shared Swarm is in use.
    lock: Option<File>,
}

impl Fixtures {
    /// The fixtures of this run, if `test-fixtures` made them.
    pub fn of_this_run() -> anyhow::Result<Option<Self>> {
        let Some(path) = std::env::var_os(VARIABLE) else { return Ok(None) };
        let text =
            std::fs::read(&path).with_context(|| format!("{VARIABLE}={}", path.display()))?;
        Ok(Some(serde_json::from_slice(&text)?))
    }

    /// Makes the images.
    pub async fn images(docker: &Docker) -> anyhow::Result<Self> {
        let id = std::process::id();
        let name = |of: &str| format!("paceline-test/{of}:{id}");
        let made = Self { toy: name("toy-job"), allocator: name("allocator"), swarm: None };
        let toy = [program("toy-job")?, program("paceline-sidecar")?];
        image_of(docker, &made.toy, &[&toy[0], &toy[1]]).await?;
        image_of(docker, &made.allocator, &[&program("paceline")?]).await?;
        Ok(made)
    }

    /// Removes the images.
    pub async fn remove_images(&self, docker: &Docker) {
        for image in [&self.toy, &self.allocator] {
            let force = RemoveImageOptionsBuilder::default().force(true).build();
            // An image that is left over is not worth hiding a test's failure.
            drop(docker.remove_image(image, Some(force), None).await);
        }
    }
}

impl TestSwarm {
    /// The run's shared Swarm, emptied, or one of the test's own if none is shared. A test that stops
    /// or cuts off machines, or removes their images, must use [`Self::own`].
    pub async fn shared(folder: &Path) -> anyhow::Result<Self> {
        let fixtures = Fixtures::of_this_run()?;
        let Some(address) = fixtures.and_then(|fixtures| fixtures.swarm) else {
            return Self::own(folder).await;
        };
        let (swarm, lock) = PrivateSwarm::attach(&address).await?;
        Ok(Self { swarm: Arc::new(swarm), lock: Some(lock) })
    }

    /// A Swarm of the test's own, which keeps everything in `folder`.
    pub async fn own(folder: &Path) -> anyhow::Result<Self> {
        Ok(Self { swarm: Arc::new(stocked(&folder.join("swarm")).await?), lock: None })
    }

    /// The Swarm.
    pub fn swarm(&self) -> Arc<PrivateSwarm> {
        Arc::clone(&self.swarm)
    }

    /// Empties a shared Swarm; ends one of the test's own.
    pub async fn clear(self) -> anyhow::Result<()> {
        let swarm = Arc::into_inner(self.swarm).context("the test has returned its Swarm")?;
        if self.lock.is_some() { swarm.empty().await } else { swarm.clear().await }
    }
}

/// A Swarm of a manager and two workers, all of which have the images of the toy job and the allocator.
async fn stocked(folder: &Path) -> anyhow::Result<PrivateSwarm> {
    let swarm = PrivateSwarm::start(folder, WORKERS).await?;
    match stock(&swarm).await {
        Ok(()) => Ok(swarm),
        Err(error) => {
            // The first error says more than one from clearing up.
            drop(swarm.clear().await);
            Err(error)
        }
    }
}

async fn stock(swarm: &PrivateSwarm) -> anyhow::Result<()> {
    let (toy, allocator) = (program("toy-job")?, program("paceline")?);
    let stocked = swarm.engines().iter().map(|engine| async {
        image_of(engine.docker(), SWARM_JOB, &[&toy]).await?;
        image_of(engine.docker(), SWARM_ALLOCATOR, &[&allocator]).await
    });
    futures_util::future::try_join_all(stocked).await.map(drop)
}

/// All fixtures of a run; they must be removed after it.
#[derive(Debug)]
pub struct Prepared {
    docker: Docker,
    fixtures: Fixtures,
    swarm: Option<PrivateSwarm>,
    folder: TempDir,
}

impl Prepared {
    /// Makes the images, and a Swarm if this machine can have one.
    pub async fn make(docker: Docker) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut fixtures = Fixtures::images(&docker).await?;
        let mut swarm = None;
        if Needs::PrivateSwarm.are_met() {
            match stocked(&folder.path().join("swarm")).await {
                Ok(made) => {
                    fixtures.swarm = Some(made.address());
                    swarm = Some(made);
                }
                Err(error) => {
                    fixtures.remove_images(&docker).await;
                    return Err(error.context("the tests' Swarm cannot be made"));
                }
            }
        }
        let prepared = Self { docker, fixtures, swarm, folder };
        std::fs::write(prepared.file(), serde_json::to_vec(&prepared.fixtures)?)?;
        Ok(prepared)
    }

    /// The path for [`VARIABLE`].
    pub fn file(&self) -> std::path::PathBuf {
        self.folder.path().join("fixtures.json")
    }

    /// Removes all of it.
    pub async fn clear(self) -> anyhow::Result<()> {
        self.fixtures.remove_images(&self.docker).await;
        match self.swarm {
            Some(swarm) => swarm.clear().await,
            None => Ok(()),
        }
    }
}
