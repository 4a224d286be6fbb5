//! The time of a job's steps beside a webhook that never answers, and without.

use std::fs;
use std::hint::black_box;
use std::io::{self, Write};
use std::net::TcpListener;
use std::path::Path;

use paceline_sidecar::clock::Clock;

use crate::figures::{self, median, percentile, print_at_most};
use crate::sidecar::Sidecar;

/// The variable that makes this program the job: a file for the times of its steps.
pub(crate) const JOB: &str = "PACELINE_BENCH_JOB";
/// Steps of a run, and the rounds of a step: a fraction of a millisecond, so that a delay shows.
const STEPS: u32 = 400;
const ROUNDS: u64 = 100_000;
/// Rounds of runs. The kinds alternate, so that other load meets all.
const ROUNDS_OF_RUNS: usize = 20;
/// How much longer a step may take, in percent.
const MAX_MORE: f64 = 0.5;

/// The job: equal steps, each with a line.
pub(crate) fn run_job(times: &Path) -> io::Result<()> {
    let (clock, mut out) = (Clock::start(), io::stdout());
    let mut all = Vec::new();
    let mut before = clock.elapsed();
    for step in 1..=STEPS {
        let mut state = u64::from(step);
        for _ in 0..ROUNDS {
            state = black_box(state ^ (state << 13) ^ (state >> 7));
        }
        black_box(state);
        writeln!(out, "iter {step}: loss {:.4}, time 1.00ms, mfu 3.21%", 5.0 / f64::from(step))?;
        let now = clock.elapsed();
        all.push(now.saturating_sub(before).as_secs_f64().to_string());
        before = now;
    }
    fs::write(times, all.join("\n"))
}

/// Prints how much longer a step takes.
pub(crate) fn print(folder: &Path) -> io::Result<()> {
    // It accepts no connection: the kernel completes it, and nothing answers.
    let silent = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/", silent.local_addr()?);
    // Two kinds of runs without a webhook show what other load changes.
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for round in 0..ROUNDS_OF_RUNS {
        for turn in 0..times.len() {
            let kind = (round + turn) % times.len();
            let url = (kind == 2).then_some(url.as_str());
            let more = run(&folder.join(format!("{round}-{kind}")), url)?;
            if let Some(all) = times.get_mut(kind) {
                all.extend(more);
            }
        }
    }
    let [without, again, with] = times;
    figures::print("step time: without a webhook, median", median(&without) * 1e3, "ms");
    figures::print("step time: with one that hangs, median", median(&with) * 1e3, "ms");
    for (name, percent) in [("medians", 50), ("10th percentiles", 10)] {
        let at = |times: &[f64]| percentile(times, percent);
        let noise = (at(&again) / at(&without) - 1.0) * 100.0;
        figures::print(&format!("step time: {name}, second kind without"), noise, "%");
        let more = (at(&with) / f64::midpoint(at(&without), at(&again)) - 1.0) * 100.0;
        print_at_most(&format!("step time: {name}, more with it"), more, MAX_MORE, "%");
    }
    println!();
    Ok(())
}

/// The times of the steps of one run, in seconds.
fn run(folder: &Path, url: Option<&str>) -> io::Result<Vec<f64>> {
    fs::create_dir_all(folder)?;
    let times = folder.join("times");
    let program = std::env::current_exe()?.to_string_lossy().into_owned();
    let job = format!("{JOB}={}", times.display());
    // The loss is acceptable from the start, so the webhook hangs during almost all steps.
    let mut words = vec!["exec", "--acceptable", "100", "--flush-timeout", "0.6"];
    words.extend(url.iter().flat_map(|url| ["--webhook", url]));
    words.extend(["--", "env", &job, &program]);
    let mut sidecar = Sidecar::spawn(folder, words)?;
    sidecar.process().wait()?;
    let text = fs::read_to_string(times)?;
    // The first ones meet cold caches.
    Ok(text.lines().skip(50).filter_map(|line| line.parse().ok()).collect())
}
