//! The delay from a printed line to the endpoint.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use paceline_sidecar::clock::Clock;

use crate::figures::{note_peak, percentile, print, print_at_most};
use crate::sidecar::Sidecar;
use crate::texts;

/// Number of lines.
const LINES: u32 = 500;
/// Time between the end of a poll and the next one.
const PERIOD: Duration = Duration::from_millis(1);

/// Measures a growing log and a printing command.
pub(crate) fn print_delays(folder: &Path) -> io::Result<()> {
    println!("{LINES} lines at random times; one poller, {PERIOD:?} after each answer, asks again");
    let log = folder.join("log");
    let file = File::create(&log)?;
    let sidecar = Sidecar::start(folder, ["--log", &log.to_string_lossy()])?;
    measure("a line in a log until it shows", sidecar, file)?;
    // `cat` prints its input at once.
    let mut sidecar = Sidecar::start(folder, ["exec", "--", "cat"])?;
    let input = sidecar.stdin()?;
    measure("a line that `exec`'s command prints until it shows", sidecar, input)?;
    println!();
    Ok(())
}

fn measure(what: &str, mut sidecar: Sidecar, mut to: impl Write) -> io::Result<()> {
    let clock = Clock::start();
    let mut pauses = Pauses(1);
    let mut millis = Vec::new();
    for line in 0..LINES {
        thread::park_timeout(pauses.next());
        let mut text = Vec::new();
        texts::pytorch(&mut text, line)?;
        let began = clock.elapsed();
        to.write_all(&text)?;
        sidecar.until(PERIOD, |progress| progress.eval.count > line.into())?;
        millis.push(clock.elapsed().saturating_sub(began).as_secs_f64() * 1e3);
    }
    note_peak(sidecar.process().peak()?);
    print(&format!("{what}, p50"), percentile(&millis, 50), "ms");
    print_at_most(&format!("{what}, p99"), percentile(&millis, 99), 20.0, "ms");
    Ok(())
}

/// Pseudo-random times from 5 to 68 ms, from a Lehmer generator.
struct Pauses(u64);

impl Pauses {
    fn next(&mut self) -> Duration {
        self.0 = self.0 * 48_271 % 0x7fff_ffff;
        Duration::from_millis(5 + self.0 % 64)
    }
}
