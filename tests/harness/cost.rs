use std::fs;

use anyhow::Context;

/// Clock ticks a second in `/proc`: Linux always uses 100 here.
const TICKS: f64 = 100.0;

/// The resources that a process has used so far.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// CPU time of all its threads, in seconds.
    pub cpu_seconds: f64,
    /// Its resident memory now, in MiB.
    pub resident: f64,
}

impl Cost {
    /// Reads the cost of process `id`.
    pub fn for_process(id: u32) -> anyhow::Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
        // The name, in brackets, may hold anything; user and system time come eleven fields later.
        let (_, fields) = stat.rsplit_once(')').context("/proc/PID/stat names the process")?;
        let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
        let ticks: f64 = ticks.sum::<Result<f64, _>>()?;
        let status = fs::read_to_string(format!("/proc/{id}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next());
        let kib: f64 = kib.context("/proc/PID/status has the memory")?.parse()?;
        Ok(Self { cpu_seconds: ticks / TICKS, resident: kib / 1024.0 })
    }
}
