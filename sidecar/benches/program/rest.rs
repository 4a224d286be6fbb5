//! The cost of a sidecar when idle, at start and on disk.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use paceline_sidecar::clock::Clock;

use crate::events;
use crate::figures::{median, note_peak, percentile, print, print_at_most, print_memory};
use crate::sidecar::{PROGRAM, Sidecar};

/// Number of starts.
const STARTS: usize = 20;
/// Time before the measurement.
const SETTLES: Duration = Duration::from_secs(2);
/// Time of the measurement.
const WATCHED: Duration = Duration::from_secs(30);

/// Measures the time from the start until it answers.
pub(crate) fn print_start(folder: &Path) -> io::Result<()> {
    let log = folder.join("log");
    let mut millis = Vec::new();
    for _ in 0..STARTS {
        let clock = Clock::start();
        let mut sidecar = Sidecar::spawn(folder, ["--log", &log.to_string_lossy()])?;
        sidecar.serves(Duration::from_micros(200))?;
        millis.push(clock.elapsed().as_secs_f64() * 1e3);
        note_peak(sidecar.process().peak()?);
    }
    print(
        &format!("from the start until it serves, the middle of {STARTS}"),
        median(&millis),
        "ms",
    );
    print_at_most(
        "from the start until it serves, the longest",
        percentile(&millis, 100),
        50.0,
        "ms",
    );
    Ok(())
}

/// Measures the CPU that it uses while nothing is written.
pub(crate) fn print_idle(folder: &Path) -> io::Result<()> {
    let (log, csv, runs) = (folder.join("log"), folder.join("metrics.csv"), folder.join("runs"));
    fs::write(&log, "iter 1: loss 2.5, time 20.00ms\n".repeat(1000))?;
    fs::write(&csv, "epoch,step,loss\n".to_owned() + &"0,1,2.5\n".repeat(1000))?;
    events::write(&runs, 10, 100)?;
    let [log, csv, runs] = [&log, &csv, &runs].map(|path| path.to_string_lossy());
    let arguments = ["--log", &*log, "--csv", &*csv, "--tfevents", &*runs];
    for (what, arguments) in [
        ("idle, with a log, a CSV file and event files", &arguments[..]),
        ("idle, with a command that prints nothing", &["exec", "--", "cat"]),
    ] {
        let mut sidecar = Sidecar::start(folder, arguments.iter().copied())?;
        thread::park_timeout(SETTLES);
        let before = sidecar.process().cpu()?;
        thread::park_timeout(WATCHED);
        let cpu = sidecar.process().cpu()? - before;
        print_at_most(what, 100.0 * cpu / WATCHED.as_secs_f64(), 0.2, "% CPU");
        print_memory(what, sidecar.process().peak()?);
    }
    Ok(())
}

/// Measures the size of the program, without symbols if `strip` is available.
pub(crate) fn print_size(folder: &Path) -> io::Result<()> {
    let stripped = folder.join("stripped");
    let strip = Command::new("strip").arg("-o").arg(&stripped).arg(PROGRAM).status();
    let (what, path) = match strip {
        Ok(status) if status.success() => ("the program, stripped", stripped.as_path()),
        _ => ("the program, with its symbols", Path::new(PROGRAM)),
    };
    let kib = u32::try_from(fs::metadata(path)?.len() / 1024).unwrap_or(u32::MAX);
    print_at_most(what, f64::from(kib) / 1024.0, 10.0, "MiB");
    Ok(())
}
