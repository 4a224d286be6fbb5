//! Measures the whole program: its speed, its delay and its use of the machine. Figures are printed
//! beside their goals. Other load on the machine changes them, so a missed goal is not a failure.
//! Arguments name the parts to run.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

mod events;
mod figures;
#[cfg(feature = "forward")]
mod forward;
mod latency;
mod memory;
mod mtail;
mod process;
mod rest;
mod sidecar;
mod texts;
mod throughput;

use std::io;
use std::path::Path;

/// Measures one thing with files in a temporary folder, and prints it.
type Part = fn(&Path) -> io::Result<()>;

const PARTS: &[(&str, Part)] = &[
    ("throughput", throughput::print),
    ("latency", latency::print_delays),
    ("memory", memory::print),
    ("start", rest::print_start),
    ("idle", rest::print_idle),
    ("size", rest::print_size),
    #[cfg(feature = "forward")]
    ("forward", forward::print),
];

fn main() -> io::Result<()> {
    #[cfg(feature = "forward")]
    if let Some(path) = std::env::var_os(forward::JOB) {
        return forward::run_job(Path::new(&path));
    }
    // Cargo adds `--bench`.
    let wanted: Vec<_> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    print_machine()?;
    for &(name, part) in PARTS {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            part(tempfile::tempdir()?.path())?;
        }
    }
    figures::print_peak();
    Ok(())
}

/// Prints the number of cores and the load of other processes.
fn print_machine() -> io::Result<()> {
    let cores = std::thread::available_parallelism()?;
    let load = std::fs::read_to_string("/proc/loadavg")?;
    let load = load.split(' ').next().unwrap_or_default();
    println!("{cores} cores, load before the start {load}\n");
    Ok(())
}
