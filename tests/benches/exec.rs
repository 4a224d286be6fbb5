//! The cost of a job's start by `paceline exec`, beside a bare start and, where systemd makes the groups,
//! beside `systemd-run --scope`: the wall clock until the command runs and until all has ended, and the CPU
//! time of all processes, also of the one that later removes the group. The job prints the time and ends.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, ensure};
use paceline_system_tests::program;
use rustix::process::{WaitOptions, getpid, set_child_subreaper, wait};

/// How often each command is started, after a first time that does not count.
const RUNS: u32 = 50;
/// What `paceline exec` may use without systemd: CPU time more than a bare start.
const MOST_CPU: Duration = Duration::from_millis(20);
/// … and with it: time until the command runs, more than by `systemd-run --scope`.
const MOST_TIME: Duration = Duration::from_millis(10);
/// The unit of CPU times in `/proc/PID/stat`.
const TICK: Duration = Duration::from_millis(10);

/// Before each start. Moving a process into a control group waits for a grace period of the kernel, unless
/// the last move was only just before.
const PAUSE: Duration = Duration::from_millis(50);
/// The job: it prints the time in nanoseconds.
const JOB: [&str; 2] = ["date", "+%s%N"];

/// What one start costs.
struct Cost {
    /// The median of the wall clock until the command runs.
    begun: Duration,
    /// The mean of the CPU time.
    cpu: Duration,
}

fn main() -> anyhow::Result<()> {
    // Processes that outlive their parents come here, so that their CPU time is counted.
    set_child_subreaper(Some(getpid()))?;
    let folder = tempfile::tempdir()?;
    let paceline = program("paceline")?.display().to_string();
    let exec = |sidecar| [&[&*paceline, "exec", "--sidecar", sidecar, "--"][..], &JOB].concat();
    println!("each {RUNS} times: medians of the wall clock, the mean of the CPU time, in ms");
    println!("{:<30} {:>7} {:>7} {:>7}", "", "runs", "ended", "CPU");
    let bare = measured("the job alone", &JOB, folder.path())?;
    let alone = measured("paceline exec --sidecar none", &exec("none"), folder.path())?;
    let whole = measured("paceline exec", &exec("auto"), folder.path())?;
    let arms = [("paceline exec --sidecar none", &alone), ("paceline exec", &whole)];
    if Path::new("/run/systemd/system").exists() {
        let of = if rustix::process::geteuid().is_root() { "--system" } else { "--user" };
        let words = [&["systemd-run", of, "--scope", "--quiet", "--collect"][..], &JOB].concat();
        let scope = measured("systemd-run --scope", &words, folder.path())?;
        for (arm, cost) in arms {
            let more = cost.begun.saturating_sub(scope.begun);
            judge(&format!("{arm}: runs later than by systemd-run --scope"), more, MOST_TIME);
        }
    } else {
        for (arm, cost) in arms {
            let more = cost.cpu.saturating_sub(bare.cpu);
            judge(&format!("{arm}: CPU time more than the job alone"), more, MOST_CPU);
        }
    }
    Ok(())
}

fn judge(what: &str, found: Duration, most: Duration) {
    let verdict = if found <= most { "within" } else { "OVER" };
    println!("{what}: {:.1} ms, {verdict} the limit of {} ms", ms(found), most.as_millis());
}

fn measured(what: &str, words: &[&str], jobs: &Path) -> anyhow::Result<Cost> {
    run(words, jobs)?;
    let before = cpu_of_children()?;
    let (mut begins, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let (begun, ended) = run(words, jobs)?;
        begins.push(begun);
        ends.push(ended);
    }
    let cpu = (cpu_of_children()?.saturating_sub(before)) / RUNS;
    let (begun, ended) = (median(begins)?, median(ends)?);
    println!("{what:<30} {:>7.1} {:>7.1} {:>7.1}", ms(begun), ms(ended), ms(cpu));
    Ok(Cost { begun, cpu })
}

fn median(mut times: Vec<Duration>) -> anyhow::Result<Duration> {
    times.sort();
    times.get(times.len() / 2).copied().context("it ran")
}

/// Runs the job once. Returns the time until it runs, and until the end; all processes have ended then.
#[expect(clippy::disallowed_methods, reason = "the wall time of a program is what is measured")]
fn run(words: &[&str], jobs: &Path) -> anyhow::Result<(Duration, Duration)> {
    let (program, rest) = words.split_first().context("a command has a program")?;
    let mut command = Command::new(program);
    command.args(rest).env("PACELINE_JOBS", jobs).env_remove("PACELINE_LISTEN");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    std::thread::sleep(PAUSE);
    let (started, at) = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH)?);
    let output =
        command.spawn().with_context(|| format!("cannot run {program}"))?.wait_with_output()?;
    let ended = started.elapsed();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success() && !said.contains("unmanaged"), "{words:?}: {said}");
    let runs = String::from_utf8(output.stdout)?.trim().parse().map(Duration::from_nanos)?;
    // The process that removes the group ends a moment later.
    while wait(WaitOptions::empty()).is_ok() {}
    Ok((runs.saturating_sub(at), ended))
}

/// The CPU time of all children that have ended, and of theirs.
fn cpu_of_children() -> anyhow::Result<Duration> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(") ").context("a process has a name")?;
    // cutime and cstime.
    let ticks: Vec<u32> =
        fields.split(' ').skip(13).take(2).map(str::parse).collect::<Result<_, _>>()?;
    Ok(TICK * ticks.iter().sum::<u32>())
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
