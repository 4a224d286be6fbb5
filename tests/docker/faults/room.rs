//! A disk that is full: where the original limits are kept, and the audit log.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::sync::Arc;

use paceline_allocator::audit::verify::verify;
use paceline_allocator::audit::{Entry, read};
use paceline_allocator::live::Command;
use paceline_policy::Share;
use paceline_system_tests::{Allocator, Bed, until};

use crate::flowcon::{QUICK, ensure_unlimited, flat_and_growing, until_cut};
use crate::orders::{order, until_quota};

/// An allocator that keeps everything on a small file system, which nobody sees but itself.
struct Cramped {
    allocator: Allocator,
    /// That file system, seen from here.
    disk: PathBuf,
}

impl Cramped {
    /// Begins with `filled` bytes of a disk of `size` KiB taken.
    fn run(bed: &Bed, size: u32, filled: u32) -> anyhow::Result<Self> {
        let state = Allocator::state(bed);
        fs::create_dir_all(&state)?;
        let script = "mount -t tmpfs -o \"size=$1k\" none \"$3\" && \
                      head -c \"$2\" /dev/zero >\"$3/ballast\" && shift 3 && exec \"$@\"";
        let mut command = tokio::process::Command::new("unshare");
        command.args(["--mount", "--", "sh", "-c", script, "sh"]);
        command.args([size.to_string(), filled.to_string()]).arg(&state);
        let paceline = Allocator::running(bed)?;
        command.arg(paceline.as_std().get_program()).args(paceline.as_std().get_args());
        command.args(["--listen", "none"]).args(QUICK).kill_on_drop(true);
        let allocator = Allocator::spawn(command)?;
        let disk = format!("/proc/{}/root{}", allocator.id()?, state.display());
        Ok(Self { allocator, disk: disk.into() })
    }

    /// Takes all room that is left.
    fn fill(&self) -> anyhow::Result<()> {
        let mut ballast = File::options().append(true).create(true).open(self.ballast())?;
        loop {
            match ballast.write(&[0; 512]) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn make_room(&self) -> anyhow::Result<()> {
        Ok(fs::remove_file(self.ballast())?)
    }

    fn ballast(&self) -> PathBuf {
        self.disk.join("ballast")
    }
}

pub(crate) async fn without_room_for_the_originals_nothing_is_limited(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let flat = flat_and_growing(&bed).await?;
    let before = bed.limits(&flat).await?;
    // All is filled but one page, which is the lock's. When there is room again, the audit log wants
    // its part of it, too.
    let cramped = Cramped::run(&bed, 128, 126_976)?;
    cramped.allocator.says(&["flat", "cannot be kept", "No space left"]).await?;
    anyhow::ensure!(bed.limits(&flat).await? == before, "it was limited without a way back");
    // As soon as there is room, all is as usual.
    cramped.make_room()?;
    until_cut(&bed, &flat).await?;
    cramped.allocator.end().await?;
    ensure_unlimited(&bed, &flat).await
}

pub(crate) async fn without_room_for_the_audit_log_limits_are_written_and_put_back(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let flat = flat_and_growing(&bed).await?;
    let cramped = Cramped::run(&bed, 1024, 0)?;
    until_cut(&bed, &flat).await?;
    cramped.fill()?;
    // Many orders: the last page of the log may still have room for some.
    for turn in 0..20 {
        let share = if turn % 2 == 0 { 0.3 } else { 0.4 };
        pin(&bed, share).await?;
        until_quota(&bed, &flat, share).await?;
    }
    cramped.allocator.says(&["audit", "cannot be written", "No space left"]).await?;
    cramped.make_room()?;
    pin(&bed, 0.5).await?;
    // The allocator goes on: a line that is not whole may be one that it is writing.
    until("the log's last line is whole", || async {
        let verdict = verify(&cramped.disk, None)?;
        anyhow::ensure!(verdict.holds(), "{verdict:?}");
        Ok((!verdict.torn).then_some(()))
    })
    .await?;
    let entries = read::last(&cramped.disk, usize::MAX)?;
    let missed = entries.iter().any(|one| matches!(one.entry, Entry::Missed { count: 1.. }));
    anyhow::ensure!(missed, "nothing tells of what is missing: {entries:?}");
    cramped.fill()?;
    cramped.allocator.end().await?;
    ensure_unlimited(&bed, &flat).await
}

/// Has the flat job held at a share, and fails unless that is done.
async fn pin(bed: &Bed, share: f64) -> anyhow::Result<()> {
    let name = "flat".to_owned();
    order(bed, Command::Pin { name, share: Share::new(share)? }).await?;
    Ok(())
}
