//! A user who may use the engine but is not root.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::Arc;

use paceline_system_tests::{Allocator, LOCKS, TestEnv, program, until};
use rustix::process::Signal;
use tokio::process::Command;

use crate::flowcon::{QUICK, ensure_unlimited, flat_and_growing, until_cut};

/// The id of that user and group, which have no rights.
pub(crate) const USER: u32 = 65_534;

pub(crate) async fn non_root_user_is_served_by_the_allocators_container(
    env: Arc<TestEnv>,
    image: String,
) -> anyhow::Result<()> {
    let flat = flat_and_growing(&env).await?;
    let allocator = managed_by_user(&env, &image)?;
    until_cut(&env, &flat).await?;
    allocator.end().await?;
    ensure_unlimited(&env, &flat).await
}

pub(crate) async fn allocators_container_does_not_outlive_its_starter(
    env: Arc<TestEnv>,
    image: String,
) -> anyhow::Result<()> {
    let flat = flat_and_growing(&env).await?;
    let mut allocator = managed_by_user(&env, &image)?;
    until_cut(&env, &flat).await?;
    allocator.signal(Signal::KILL)?;
    allocator.ended().await?;
    until("the limit is put back", || async { Ok(ensure_unlimited(&env, &flat).await.ok()) })
        .await?;
    let mut restore = by_user(&env, &image)?;
    restore.args(["restore", "--state-dir"]).arg(Allocator::state(&env));
    until("nothing is left to put back", || {
        let output = restore.output();
        async move {
            let said = String::from_utf8(output.await?.stdout)?;
            Ok(said.contains("nothing to restore").then_some(()))
        }
    })
    .await
}

/// Manages the test's jobs as a user who is not root.
fn managed_by_user(env: &TestEnv, image: &str) -> anyhow::Result<Allocator> {
    let mut command = by_user(env, image)?;
    command.args(["run", "--listen", "none", "--with-label", &env.label()]).args(QUICK);
    command.arg("--state-dir").arg(Allocator::state(env));
    Allocator::spawn(command)
}

/// `paceline`, to be run by a user who is not root but may use the engine.
pub(crate) fn by_user(env: &TestEnv, image: &str) -> anyhow::Result<Command> {
    let state = Allocator::state(env);
    std::fs::create_dir_all(&state)?;
    for folder in [env.folder(), &state] {
        std::os::unix::fs::chown(folder, Some(USER), Some(USER))?;
    }
    // That user may not read the folder where the tests were built.
    let copy = env.file("paceline");
    if !copy.exists() {
        std::fs::copy(program("paceline")?, &copy)?;
        std::fs::set_permissions(&copy, PermissionsExt::from_mode(0o755))?;
    }
    let socket = std::env::var("DOCKER_HOST").unwrap_or_default();
    let socket = socket.strip_prefix("unix://").unwrap_or("/var/run/docker.sock");
    let docker_group = std::fs::metadata(socket)?.gid().to_string();
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", &USER.to_string(), "--regid", &USER.to_string()])
        .args(["--groups", &docker_group, "--"])
        .arg(copy)
        .env("PACELINE_ALLOCATOR_IMAGE", image)
        .env(LOCKS, Allocator::locks()?)
        .kill_on_drop(true);
    Ok(command)
}
