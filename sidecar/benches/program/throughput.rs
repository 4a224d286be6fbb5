//! The speed of reading an existing log, compared with `mtail`.

use std::fs;
use std::io;
use std::path::Path;

use paceline_sidecar::clock::Clock;

use crate::figures::{median, note_peak};
use crate::mtail;
use crate::process::Process;
use crate::sidecar::Sidecar;
use crate::texts::{KINDS, Kind, SIZE};

/// Number of runs of each program, in turns.
const TURNS: usize = 3;

/// The cost of reading a text: CPU seconds, wall seconds, peak memory in MiB.
#[derive(Clone, Copy, Debug)]
struct Took {
    cpu: f64,
    wall: f64,
    peak: f64,
}

/// Measures all kinds of text.
pub(crate) fn print(folder: &Path) -> io::Result<()> {
    println!(
        "reading {} MB; MB/s per core, MB/s, peak MiB; the middle of {TURNS} turns",
        SIZE / 1_000_000
    );
    println!("{:<15} {:^24}  {:^24}  goal", "", "paceline-sidecar", "mtail");
    for kind in KINDS {
        let text = folder.join("text");
        let size = kind.write(&text)?;
        let (ours, theirs) = read(&kind, folder, &text, size)?;
        let best = words(&ours);
        let other = match kind.pattern {
            None => "unable: no newline".to_owned(),
            Some(_) if theirs.is_empty() => "skipped: no mtail here".to_owned(),
            Some(_) => words(&theirs),
        };
        println!("{:<15} {best:<24}  {other:<24}  {}", kind.name, verdict(&kind, &ours, &theirs));
        fs::remove_file(text)?;
    }
    println!();
    Ok(())
}

fn read(kind: &Kind, folder: &Path, text: &Path, size: u64) -> io::Result<(Vec<Took>, Vec<Took>)> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        ours.push(by_sidecar(folder, text, size)?);
        if let Some(pattern) = kind.pattern.filter(|_| mtail::is_there()) {
            theirs.push(by_mtail(mtail::start(folder, text, pattern)?)?);
        }
    }
    Ok((ours, theirs))
}

/// The log gets its name once the sidecar runs, so that the start is not measured.
fn by_sidecar(folder: &Path, text: &Path, size: u64) -> io::Result<Took> {
    let log = folder.join("log");
    let mut sidecar = Sidecar::start(folder, ["--log", &log.to_string_lossy()])?;
    let (clock, before) = (Clock::start(), sidecar.process().cpu()?);
    fs::hard_link(text, &log)?;
    sidecar.has_read(size)?;
    let wall = clock.elapsed().as_secs_f64();
    let cpu = sidecar.process().cpu()? - before;
    let peak = sidecar.process().peak()?;
    note_peak(peak);
    fs::remove_file(log)?;
    Ok(Took { cpu, wall, peak })
}

fn by_mtail(mut process: Process) -> io::Result<Took> {
    let clock = Clock::start();
    process.wait()?;
    let wall = clock.elapsed().as_secs_f64();
    Ok(Took { cpu: process.cpu()?, wall, peak: process.peak()? })
}

fn words(all: &[Took]) -> String {
    let of = |part: fn(&Took) -> f64| median(&all.iter().map(part).collect::<Vec<_>>());
    let peak = of(|took| took.peak);
    format!("{:7.1} {:7.1} {peak:8.1}", speed(all), megabytes() / of(|took| took.wall))
}

/// MB/s per core.
fn speed(all: &[Took]) -> f64 {
    megabytes() / median(&all.iter().map(|took| took.cpu).collect::<Vec<_>>())
}

fn megabytes() -> f64 {
    f64::from(SIZE) / 1e6
}

fn verdict(kind: &Kind, ours: &[Took], theirs: &[Took]) -> String {
    let ours = speed(ours);
    let ahead = theirs.is_empty() || ours > speed(theirs);
    let quick = kind.goal.is_none_or(|goal| ours >= goal);
    let goal = kind.goal.map_or("ahead".to_owned(), |goal| format!(">= {goal}"));
    let verdict = if ahead && quick { "ok" } else { "MISSED" };
    format!("{goal} {verdict}")
}
