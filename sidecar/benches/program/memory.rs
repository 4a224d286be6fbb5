//! The peak memory of a sidecar under extreme input.

use std::io::{self, Write};
use std::path::Path;

use crate::events;
use crate::figures::print_memory;
use crate::sidecar::Sidecar;
use crate::texts::{KINDS, Kind};

/// Tags of a TensorBoard folder, and the steps of each.
const TAGS: (u32, u16) = (10_000, 20);
/// Number of pieces of 1 MiB of an endless line.
const PIECES: u64 = 1024;

/// Measures the peak memory.
pub(crate) fn print(folder: &Path) -> io::Result<()> {
    for kind in KINDS {
        print_memory(&format!("`exec`, {}", kind.name), by_exec(&kind, folder)?);
    }
    let (tags, steps) = TAGS;
    print_memory(&format!("{tags} TensorBoard tags"), with_tags(folder, tags, steps)?);
    print_memory("1 GiB without a newline", without_end(folder)?);
    println!();
    Ok(())
}

/// A command that prints as fast as its output is read.
fn by_exec(kind: &Kind, folder: &Path) -> io::Result<f64> {
    let text = folder.join("text");
    kind.write(&text)?;
    let mut sidecar = Sidecar::start(folder, ["exec", "--", "cat", &text.to_string_lossy()])?;
    sidecar.process().wait()?;
    sidecar.process().peak()
}

fn with_tags(folder: &Path, tags: u32, steps: u16) -> io::Result<f64> {
    let runs = folder.join("runs");
    let size = events::write(&runs, tags, steps)?;
    let mut sidecar = Sidecar::start(folder, ["--tfevents", &runs.to_string_lossy()])?;
    sidecar.has_read(size)?;
    sidecar.process().peak()
}

fn without_end(folder: &Path) -> io::Result<f64> {
    let mut sidecar = Sidecar::start(folder, ["--log", "-"])?;
    let mut input = sidecar.stdin()?;
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..PIECES {
        input.write_all(&piece)?;
    }
    sidecar.has_read(PIECES << 20)?;
    sidecar.process().peak()
}
