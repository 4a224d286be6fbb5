//! A wall clock that a test sets, under a program that knows nothing of it.

use std::fs;
use std::path::{Path, PathBuf};

use tokio::process::Command;

/// A library that stands before libc's clock, and the file that says how far that clock is off.
#[derive(Debug)]
pub struct WallClock {
    library: PathBuf,
    off: PathBuf,
}

impl WallClock {
    /// Builds it in `folder`, by the compiler that Rust links by. It is right at first.
    pub fn make(folder: &Path) -> anyhow::Result<Self> {
        let clock = Self { library: folder.join("clock.so"), off: folder.join("clock") };
        // The reporter's test sets the same clock under a job.
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../reporter/tests/clock_steps.c");
        let mut compiler = std::process::Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-Wall", "-Werror", "-o"]).arg(&clock.library);
        anyhow::ensure!(compiler.arg(source).status()?.success(), "cc does not build {source}");
        clock.set(0)?;
        Ok(clock)
    }

    /// Has a program look at this clock.
    pub fn under(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library).env("PACELINE_TEST_CLOCK", &self.off);
    }

    /// Sets it so many seconds ahead of the machine's, or behind it.
    pub fn set(&self, seconds: i64) -> anyhow::Result<()> {
        // By another name first: a clock that is half written would be read.
        let new = self.off.with_extension("new");
        fs::write(&new, seconds.to_ne_bytes())?;
        Ok(fs::rename(new, &self.off)?)
    }
}
