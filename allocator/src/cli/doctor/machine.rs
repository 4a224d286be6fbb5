//! The user, the kernel and the control groups.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use paceline_cgroup::probe::probe;
use rustix::process::{Resource, getrlimit};

use super::super::priority;
use super::report::Finding;

/// Capabilities by their numbers, and what they are for. Without the first two the allocator cannot
/// reach its jobs.
const NEEDED: [(u32, &str, &str); 2] = [
    (21, "CAP_SYS_ADMIN", "enters the jobs' network namespaces"),
    (19, "CAP_SYS_PTRACE", "finds them below /proc"),
];
const USEFUL: [(u32, &str, &str); 2] = [
    (1, "CAP_DAC_OVERRIDE", "connects to Unix sockets of other users' jobs"),
    (23, "CAP_SYS_NICE", "reserves CPU time for quick reactions"),
];
/// The first kernel that resolves a path inside of a container's root (`openat2`).
const FIRST_KERNEL: (u32, u32) = (5, 6);
/// Fewer open files are too few for some thousand jobs.
const FEW_FILES: u64 = 4096;
/// The longest `/proc/PID/status` that is read.
const MAX_STATUS: u64 = 64 << 10;

/// The user and the capabilities, of a process that is root.
pub(super) fn user(proc: &Path) -> Vec<Finding> {
    let path = proc.join("self/status");
    let mut status = String::new();
    let read =
        fs::File::open(&path).and_then(|file| file.take(MAX_STATUS).read_to_string(&mut status));
    if let Err(error) = read {
        let found = format!("cannot read {}: {error}", path.display());
        return vec![Finding::error("capabilities", found, "mount /proc, or set --proc")];
    }
    let user = match std::env::var(paceline_api::state_folder::OWNER) {
        Ok(owner) => format!("root in a container, for user {owner}"),
        Err(_) => "root".to_owned(),
    };
    vec![Finding::ok("user", user), capabilities(&status)]
}

/// A user who is not root, for whom the allocator cannot run in a container.
pub(super) fn not_root(why: &str, advice: &str) -> Finding {
    Finding::error("user", format!("not root: {why}"), advice)
}

fn capabilities(status: &str) -> Finding {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let held = line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
    let missing = |of: &[(u32, &str, &str)]| -> Vec<String> {
        let absent = of.iter().filter(|(bit, ..)| held & (1 << bit) == 0);
        absent.map(|(_, name, use_of_it)| format!("{name}, which {use_of_it}")).collect()
    };
    let (needed, useful) = (missing(&NEEDED), missing(&USEFUL));
    let advice = "allow it, as in examples/deploy/paceline.service";
    match (needed.is_empty(), useful.is_empty()) {
        (true, true) => Finding::ok("capabilities", "all that are needed"),
        (false, _) => {
            let all = [needed, useful].concat().join("; ");
            Finding::error("capabilities", format!("missing: {all}"), advice)
        }
        (true, false) => {
            Finding::warning("capabilities", format!("missing: {}", useful.join("; ")), advice)
        }
    }
}

/// Whether limits can be written to control-group files. On a Kubernetes node the runtime writes them.
pub(super) fn groups(proc: &Path, of_kubernetes: bool) -> Finding {
    match probe(proc) {
        Ok(place) if of_kubernetes => Finding::ok(
            "control groups",
            format!("{place}: can be read and written; `--actuator auto` takes the runtime"),
        ),
        Ok(place) => Finding::ok(
            "control groups",
            format!(
                "{place}: a limit was written to a group of its own, and read back; `--actuator auto` \
                 writes files"
            ),
        ),
        Err(error) => {
            let why = anyhow::Error::from(error);
            Finding::warning(
                "control groups",
                format!("`--actuator auto` takes the engine: {why:#}"),
                "run as root where /sys/fs/cgroup is writable and shows the whole machine",
            )
        }
    }
}

/// The kernel's version and features. Without root the allocator runs in a container, so what this
/// process may do says nothing about it.
pub(super) fn kernel(proc: &Path, is_root: bool) -> Vec<Finding> {
    let release = fs::read_to_string(proc.join("sys/kernel/osrelease")).unwrap_or_default();
    let pressure = proc.join("pressure/cpu").exists();
    let own = is_root.then(|| [reservation(priority::can_reserve()), files()]);
    std::iter::once(version(release.trim(), pressure)).chain(own.into_iter().flatten()).collect()
}

fn version(release: &str, pressure: bool) -> Finding {
    let mut numbers = release.split(['.', '-']).map(|part| part.parse::<u32>().ok());
    let version = numbers.next().flatten().zip(numbers.next().flatten());
    let pressure = if pressure { "with PSI" } else { "without PSI" };
    let found = format!("Linux {release}, {pressure}");
    if version.is_some_and(|version| version >= FIRST_KERNEL) {
        return Finding::ok("kernel", found);
    }
    let (major, minor) = FIRST_KERNEL;
    let advice = format!("endpoints on Unix sockets need Linux {major}.{minor}; ports work");
    Finding::warning("kernel", found, advice)
}

fn reservation(tried: io::Result<()>) -> Finding {
    let error = match tried {
        Ok(()) => return Finding::ok("priority", "CPU time can be reserved (SCHED_DEADLINE)"),
        Err(error) => error,
    };
    if error.kind() == io::ErrorKind::ResourceBusy {
        let found = "all CPU time that can be reserved is reserved (SCHED_DEADLINE)";
        let advice = "this is normal while allocators run; a further one reacts more slowly while \
                      jobs use all CPUs";
        return Finding { advice: Some(advice.to_owned()), ..Finding::ok("priority", found) };
    }
    Finding::warning(
        "priority",
        format!("no CPU time can be reserved (SCHED_DEADLINE): {error}"),
        "reactions are slower while jobs use all CPUs; allow CAP_SYS_NICE",
    )
}

fn files() -> Finding {
    let most = getrlimit(Resource::Nofile).maximum;
    match most {
        Some(most) if most < FEW_FILES => Finding::warning(
            "open files",
            format!("at most {most}"),
            format!("each job takes two; raise the limit to {FEW_FILES} (ulimit -Hn)"),
        ),
        Some(most) => Finding::ok("open files", format!("at most {most}")),
        None => Finding::ok("open files", "no limit"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Level;
    use super::*;

    #[test]
    fn missing_capabilities_are_named_with_their_use() {
        let of = |bits: u64| capabilities(&format!("Name:\tpaceline\nCapEff:\t{bits:016x}\n"));
        let all = (1 << 21) | (1 << 19) | (1 << 1) | (1 << 23);
        assert_eq!(of(all).level, Level::Ok);
        let without_nice = of(all & !(1 << 23));
        assert_eq!(without_nice.level, Level::Warning);
        assert!(without_nice.found.starts_with("missing: CAP_SYS_NICE"), "{without_nice:?}");
        let without_admin = of(all & !(1 << 21));
        assert_eq!(without_admin.level, Level::Error);
        assert_eq!(capabilities("").level, Level::Error);
    }

    #[test]
    fn reservation_of_others_is_normal_and_a_refused_one_is_not() {
        assert_eq!(reservation(Ok(())).level, Level::Ok);
        let busy = reservation(Err(io::ErrorKind::ResourceBusy.into()));
        assert_eq!(busy.level, Level::Ok);
        assert!(!busy.advice.unwrap().contains("CAP_SYS_NICE"));
        let refused = reservation(Err(io::ErrorKind::PermissionDenied.into()));
        assert_eq!(refused.level, Level::Warning);
        assert!(refused.advice.unwrap().contains("CAP_SYS_NICE"));
    }

    #[test]
    fn kernel_is_compared_with_the_first_that_has_all() {
        for (release, level) in [
            ("6.18.2-arch1", Level::Ok),
            ("5.6.0", Level::Ok),
            ("10.0", Level::Ok),
            ("5.4.0-190-generic", Level::Warning),
            ("4.19.0", Level::Warning),
            ("", Level::Warning),
        ] {
            assert_eq!(version(release, true).level, level, "{release}");
        }
        assert!(version("6.1.0", false).found.ends_with("without PSI"));
    }
}
