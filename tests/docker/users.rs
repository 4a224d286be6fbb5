//! Users who may use the engine but are not root.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::Arc;

use paceline_system_tests::{Allocator, Bed, program, until};
use rustix::process::Signal;
use tokio::process::Command;

use crate::flowcon::{QUICK, ensure_unlimited, flat_and_growing, until_cut};

/// Nobody in particular.
const SOMEBODY: u32 = 65_534;

pub(crate) async fn who_is_not_root_is_served_by_the_allocators_own_container(
    bed: Arc<Bed>,
    image: String,
) -> anyhow::Result<()> {
    let flat = flat_and_growing(&bed).await?;
    let allocator = managed_by_somebody(&bed, &image)?;
    until_cut(&bed, &flat).await?;
    allocator.end().await?;
    ensure_unlimited(&bed, &flat).await
}

pub(crate) async fn the_allocators_own_container_does_not_outlive_who_started_it(
    bed: Arc<Bed>,
    image: String,
) -> anyhow::Result<()> {
    let flat = flat_and_growing(&bed).await?;
    let mut allocator = managed_by_somebody(&bed, &image)?;
    until_cut(&bed, &flat).await?;
    allocator.signal(Signal::KILL)?;
    allocator.ended().await?;
    until("the limit is put back", || async { Ok(ensure_unlimited(&bed, &flat).await.ok()) })
        .await?;
    let mut restore = by_somebody(&bed, &image)?;
    restore.args(["restore", "--state-dir"]).arg(Allocator::state(&bed));
    until("nothing is left to put back", || {
        let output = restore.output();
        async move {
            let said = String::from_utf8(output.await?.stdout)?;
            Ok(said.contains("nothing to put back").then_some(()))
        }
    })
    .await
}

/// The bed's jobs, managed by a user who is not root.
fn managed_by_somebody(bed: &Bed, image: &str) -> anyhow::Result<Allocator> {
    let mut command = by_somebody(bed, image)?;
    command.args(["run", "--listen", "none", "--with-label", &bed.label()]).args(QUICK);
    command.arg("--state-dir").arg(Allocator::state(bed));
    Allocator::spawn(command)
}

/// `paceline`, run by a user who is not root but may use the engine.
fn by_somebody(bed: &Bed, image: &str) -> anyhow::Result<Command> {
    let state = Allocator::state(bed);
    std::fs::create_dir_all(&state)?;
    for folder in [bed.folder(), &state] {
        std::os::unix::fs::chown(folder, Some(SOMEBODY), Some(SOMEBODY))?;
    }
    // Where the tests were built, that user may not even look.
    let copy = bed.file("paceline");
    if !copy.exists() {
        std::fs::copy(program("paceline")?, &copy)?;
        std::fs::set_permissions(&copy, PermissionsExt::from_mode(0o755))?;
    }
    let socket = std::env::var("DOCKER_HOST").unwrap_or_default();
    let socket = socket.strip_prefix("unix://").unwrap_or("/var/run/docker.sock");
    let docker_group = std::fs::metadata(socket)?.gid().to_string();
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", &SOMEBODY.to_string(), "--regid", &SOMEBODY.to_string()])
        .args(["--groups", &docker_group, "--"])
        .arg(copy)
        .env("PACELINE_ALLOCATOR_IMAGE", image)
        .kill_on_drop(true);
    Ok(command)
}
