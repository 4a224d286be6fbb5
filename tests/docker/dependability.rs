//! Ends of the allocator that nobody planned.

use std::sync::Arc;

use paceline_system_tests::{Allocator, Bed, until};
use rustix::process::Signal;

use crate::flowcon::{cut_job, ensure_unlimited};

/// Two jobs, the flat one cut, and the allocator killed. Returns the flat one.
async fn killed(bed: &Bed) -> anyhow::Result<String> {
    let (flat, mut allocator) = cut_job(bed, &[]).await?;
    allocator.signal(Signal::KILL)?;
    allocator.ended().await?;
    anyhow::ensure!(ensure_unlimited(bed, &flat).await.is_err(), "nobody could have put it back");
    Ok(flat)
}

pub(crate) async fn after_a_kill_restore_puts_every_limit_back(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let flat = killed(&bed).await?;
    let said = Allocator::restore(&bed).await?;
    anyhow::ensure!(said.contains("as it was"), "{said}");
    ensure_unlimited(&bed, &flat).await?;
    let said = Allocator::restore(&bed).await?;
    anyhow::ensure!(said.contains("nothing to put back"), "{said}");
    Ok(())
}

pub(crate) async fn a_restore_goes_on_when_its_reader_has_left(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let flat = killed(&bed).await?;
    let state = Allocator::state(&bed);
    // The second one has nothing to put back, and says so.
    for _ in 0..2 {
        let unread =
            Allocator::unread(&["restore", "--state-dir", &state.to_string_lossy()]).await?;
        anyhow::ensure!(unread.status.success() && unread.stderr.is_empty(), "{unread:?}");
        ensure_unlimited(&bed, &flat).await?;
    }
    Ok(())
}

pub(crate) async fn the_next_run_puts_back_what_a_killed_one_left(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let flat = killed(&bed).await?;
    let allocator = Allocator::run(&bed, &["--policy", "none"])?;
    allocator.says(&["an earlier run left limits", "as it was"]).await?;
    // On a slow machine the growing job may have had a limit too, and be the one that is told of.
    until("the flat job is without a limit", || async {
        Ok(ensure_unlimited(&bed, &flat).await.ok())
    })
    .await?;
    allocator.end().await
}

pub(crate) async fn ctrl_c_puts_every_limit_back_and_ends_with_130(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let (flat, mut allocator) = cut_job(&bed, &[]).await?;
    allocator.signal(Signal::INT)?;
    let status = allocator.ended().await?;
    anyhow::ensure!(status.code() == Some(130), "{status}");
    ensure_unlimited(&bed, &flat).await
}

pub(crate) async fn a_second_allocator_is_turned_away(bed: Arc<Bed>) -> anyhow::Result<()> {
    let first = Allocator::run(&bed, &["--policy", "none"])?;
    first.says(&["allocator runs"]).await?;
    let mut second = Allocator::run(&bed, &["--policy", "none"])?;
    let status = second.ended().await?;
    anyhow::ensure!(status.code() == Some(1), "{status}");
    let holder = format!("process {} on ", first.id()?);
    second.says(&["another allocator", &holder, " since 2", "policy none"]).await?;
    first.end().await
}
