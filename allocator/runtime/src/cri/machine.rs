//! The machine of a runtime, which CRI does not describe.

use std::fs;
use std::path::Path;

use serde::Deserialize;

/// The most characters of a runtime's folder in its id.
const MAX_FOLDER: usize = 120;

/// The part of a runtime's configuration that is used. Containerd says all of it, CRI-O none.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Config {
    #[serde(rename = "rootDir")]
    root: String,
    containerd: Containerd,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Containerd {
    runtimes: std::collections::BTreeMap<String, RuntimeConfig>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RuntimeConfig {
    options: Options,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Options {
    #[serde(rename = "SystemdCgroup")]
    systemd: bool,
}

/// The folder of the runtime's data; empty if it does not say.
pub(super) fn data(config: Option<&str>) -> String {
    config.and_then(|text| serde_json::from_str::<Config>(text).ok()).unwrap_or_default().root
}

/// How runc makes control groups, if the runtime names it.
pub(super) fn driver(config: &str) -> Option<String> {
    let config: Config = serde_json::from_str(config).ok()?;
    let runc = config.containerd.runtimes.get("runc")?;
    Some(if runc.options.systemd { "systemd" } else { "cgroupfs" }.to_owned())
}

/// A runtime's id: it has none, so its name and the folder of its data stand for it. The path of its
/// socket would not do, since a container may see it elsewhere.
pub(super) fn id(name: &str, data: &str) -> String {
    let skipped = data.chars().count().saturating_sub(MAX_FOLDER);
    let folder: String = data.chars().skip(skipped).collect();
    format!("cri-{name}{folder}")
}

/// The machine's name.
pub(super) fn name(proc: &Path) -> Option<String> {
    line(&proc.join("sys/kernel/hostname"))
}

/// The kernel's release.
pub(super) fn kernel(proc: &Path) -> Option<String> {
    line(&proc.join("sys/kernel/osrelease"))
}

fn line(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned()).filter(|line| !line.is_empty())
}

/// The number of CPUs that are online.
pub(super) fn cpus(proc: &Path) -> Option<i64> {
    let stat = fs::read_to_string(proc.join("stat")).ok()?;
    let is_cpu = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    i64::try_from(stat.lines().filter(is_cpu).count()).ok().filter(|cpus| *cpus > 0)
}

/// The machine's memory in bytes.
pub(super) fn memory(proc: &Path) -> Option<i64> {
    let text = fs::read_to_string(proc.join("meminfo")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}
