//! A wall clock that a test can set for a program, without the program's help.

use std::fs;
use std::path::{Path, PathBuf};

use tokio::process::Command;

/// A library that replaces libc's clock, and the file with that clock's offset.
#[derive(Debug)]
pub struct WallClock {
    library: PathBuf,
    off: PathBuf,
}

impl WallClock {
    /// Builds it in `folder` with `cc`, which Rust also needs to link. Its offset is 0 at first.
    pub fn make(folder: &Path) -> anyhow::Result<Self> {
        let clock = Self { library: folder.join("clock.so"), off: folder.join("clock") };
        // The reporter's test uses the same library.
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../reporter/tests/clock_steps.c");
        let mut compiler = std::process::Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-Wall", "-Werror", "-o"]).arg(&clock.library);
        anyhow::ensure!(compiler.arg(source).status()?.success(), "cc does not build {source}");
        clock.set(0)?;
        Ok(clock)
    }

    /// Makes a program use this clock.
    pub fn under(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library).env("PACELINE_TEST_CLOCK", &self.off);
    }

    /// Sets it `seconds` ahead of the machine's clock, or behind if negative.
    pub fn set(&self, seconds: i64) -> anyhow::Result<()> {
        // Written under another name first, so that no program reads half a value.
        let new = self.off.with_extension("new");
        fs::write(&new, seconds.to_ne_bytes())?;
        Ok(fs::rename(new, &self.off)?)
    }
}
