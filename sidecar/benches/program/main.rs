//! The whole program, as people run it: how quickly it reads, how soon a line shows, what it takes of
//! the machine. Figures stand beside what is asked of them; neighbours on the machine move them, so
//! that nothing fails by them. Names of parts as arguments run these parts alone.

#![expect(clippy::print_stdout, reason = "a benchmark talks to whoever runs it")]

mod events;
mod figures;
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

/// Measures one thing with files in a folder of its own, and prints it.
type Part = fn(&Path) -> io::Result<()>;

const PARTS: [(&str, Part); 6] = [
    ("throughput", throughput::print),
    ("latency", latency::print_delays),
    ("memory", memory::print),
    ("start", rest::print_start),
    ("idle", rest::print_idle),
    ("size", rest::print_size),
];

fn main() -> io::Result<()> {
    // Cargo adds `--bench`.
    let wanted: Vec<_> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    print_machine()?;
    for (name, part) in PARTS {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            part(tempfile::tempdir()?.path())?;
        }
    }
    figures::print_peak();
    Ok(())
}

/// Says how much of the machine there is, and how much of it others use.
fn print_machine() -> io::Result<()> {
    let cores = std::thread::available_parallelism()?;
    let load = std::fs::read_to_string("/proc/loadavg")?;
    let load = load.split(' ').next().unwrap_or_default();
    println!("{cores} cores, before this {load} processes at work on them\n");
    Ok(())
}
