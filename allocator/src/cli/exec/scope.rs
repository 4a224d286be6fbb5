//! A transient scope of systemd around this process: with control groups of version 2, systemd owns them,
//! and gives a user a part of them only in this way.
//!
//! The scope is delegated, and the limits are in a group below it. So systemd, which writes the scope's own
//! limits again at `daemon-reload`, never touches them, and they need the same rights and the same code as
//! all others. The limit of the scope by `systemctl set-property` holds beside them.
//!
//! systemd's own `busctl` makes the request, as a process: a client of D-Bus in this program would have
//! some 60 further packages for one call, and a failure of `busctl` leaves this process as it was.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{anyhow, bail};
use paceline_cgroup::mounts;
use paceline_runtime::processes::folder::runtime_folder;

/// systemd runs if this folder exists (`sd_booted`).
const BOOTED: &str = "/run/systemd/system";
/// The slice of all jobs.
const SLICE: &str = "paceline.slice";
/// How often it is checked whether this process is in the scope …
const CHECK_PERIOD: Duration = Duration::from_millis(2);
/// … and how many times.
const MAX_CHECKS: u32 = 2500;

/// What systemd answers while it stops the slice of all jobs, and just after that.
const STOPPING: [&str; 2] = ["destructive", "paceline.slice not found"];
/// How often systemd is asked, while jobs begin and end around this one.
const MAX_CALLS: u32 = 20;
/// The advice where `busctl` is missing.
pub(in crate::cli) const NO_BUSCTL: &str = "install the package of systemd that has it";

/// A manager of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Manager {
    /// The machine's.
    System,
    /// The user's.
    User,
}

/// What a user lacks for a manager of systemd: the fact, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found}; {advice}")]
pub(in crate::cli) struct NoManager {
    pub(in crate::cli) found: String,
    pub(in crate::cli) advice: String,
}

/// The address of the bus of user `uid`'s manager, whose runtime folder is given.
pub(in crate::cli) fn user_bus(runtime: Option<&Path>, uid: u32) -> Result<PathBuf, NoManager> {
    // The environment may name another folder than the manager's.
    let usual = PathBuf::from(format!("/run/user/{uid}"));
    let mut folders = runtime.into_iter().chain([usual.as_path()]);
    let Some(runtime) = folders.find(|it| it.join("systemd").is_dir()) else {
        return Err(NoManager {
            found: format!("user {uid} has no manager of systemd"),
            advice: "log in, for example by ssh, or run `loginctl enable-linger` once as this user"
                .to_owned(),
        });
    };
    let bus = runtime.join("bus");
    if bus.exists() {
        return Ok(bus);
    }
    Err(NoManager {
        found: format!("the user's manager of systemd has no bus at {}", bus.display()),
        advice: "install the package dbus-user-session, and log in again".to_owned(),
    })
}

/// Whether only systemd can make a group: it runs, and the groups are of version 2.
pub(in crate::cli) fn is_needed(proc: &Path) -> bool {
    let read = |name: &str| fs::read_to_string(proc.join("self").join(name)).unwrap_or_default();
    let v1 = mounts::v1_folder("cpu", &read("cgroup"), &read("mountinfo"));
    v1.is_none() && Path::new(BOOTED).is_dir()
}

/// Puts this process into a new scope.
pub(super) fn enter(proc: &Path, manager: Manager, unit: &str, name: &str) -> anyhow::Result<()> {
    ask(manager, unit, name)?;
    let inside = || {
        let groups = fs::read_to_string(proc.join("self/cgroup")).unwrap_or_default();
        groups.lines().any(|line| line.ends_with(unit))
    };
    for _ in 0..MAX_CHECKS {
        if inside() {
            return Ok(());
        }
        pause();
    }
    bail!("systemd has not put the job into its scope {unit}; see `journalctl -b _PID=1`")
}

/// Asks systemd for the scope. The first job brings the slice of all jobs, which systemd then stops after
/// the last one; systemd would keep a slice that no job brings.
fn ask(manager: Manager, unit: &str, name: &str) -> anyhow::Result<()> {
    let uid = rustix::process::geteuid().as_raw();
    let runtime = runtime_folder(uid);
    let mut busctl = Command::new("busctl");
    if manager == Manager::User {
        let bus = user_bus(runtime.as_deref(), uid)?;
        // The environment may name another bus, or none.
        busctl.env("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={}", bus.display()));
        busctl.env("XDG_RUNTIME_DIR", bus.parent().unwrap_or(&bus));
    }
    let mut brings_slice = !has_slice(manager, uid);
    let mut said = String::new();
    for _ in 0..MAX_CALLS {
        let mut call_now = Command::new(busctl.get_program());
        call_now.envs(busctl.get_envs().filter_map(|(key, value)| Some((key, value?))));
        call_now.args(call(manager, unit, name, std::process::id(), brings_slice));
        let output = call_now.output().map_err(|error| {
            if error.kind() == ErrorKind::NotFound {
                anyhow!("busctl is missing; {NO_BUSCTL}")
            } else {
                anyhow!("cannot run busctl: {error}; {NO_BUSCTL}")
            }
        })?;
        if output.status.success() {
            return Ok(());
        }
        String::from_utf8_lossy(&output.stderr).trim().clone_into(&mut said);
        match next(&said, brings_slice) {
            Some(brings) => brings_slice = brings,
            None => break,
        }
        pause();
    }
    let said = said.lines().next().unwrap_or("no message").trim();
    let advice = match manager {
        Manager::System => "see `journalctl -b _PID=1`",
        Manager::User => "log in again, or see `journalctl --user -b`",
    };
    bail!("cannot start a scope of systemd: {said}; {advice}")
}

/// Whether the next call brings the slice, after an error; `None` if another call is of no use.
fn next(said: &str, brings_slice: bool) -> Option<bool> {
    // Another job or the machine's owner has made the slice meanwhile.
    if brings_slice {
        return Some(false);
    }
    // The slice goes with its last job, and then the next one brings it.
    STOPPING.iter().any(|word| said.contains(word)).then_some(true)
}

/// Whether a job has brought the slice of all jobs. Its group says less: systemd also makes one for a job that
/// does not bring it, and would keep that.
fn has_slice(manager: Manager, uid: u32) -> bool {
    let folder = match manager {
        Manager::System => PathBuf::from("/run"),
        Manager::User => PathBuf::from(format!("/run/user/{uid}")),
    };
    folder.join("systemd/transient").join(SLICE).exists()
}

#[expect(clippy::disallowed_methods, reason = "nothing else runs in this process")]
fn pause() {
    std::thread::sleep(CHECK_PERIOD);
}

/// The arguments of the call.
fn call(manager: Manager, unit: &str, name: &str, pid: u32, brings_slice: bool) -> Vec<String> {
    let manager = match manager {
        Manager::System => "--system",
        Manager::User => "--user",
    };
    let description = format!("Paceline job {name}");
    let pid = pid.to_string();
    let words = [
        manager,
        "--quiet",
        "--",
        "call",
        "org.freedesktop.systemd1",
        "/org/freedesktop/systemd1",
        "org.freedesktop.systemd1.Manager",
        "StartTransientUnit",
        "ssa(sv)a(sa(sv))",
        unit,
        "fail",
        "5",
        "Description",
        "s",
        &description,
        "PIDs",
        "au",
        "1",
        &pid,
        "Slice",
        "s",
        SLICE,
        "Delegate",
        "b",
        "true",
        "CollectMode",
        "s",
        "inactive-or-failed",
    ];
    let slice: &[&str] =
        if brings_slice { &["1", SLICE, "1", "StopWhenUnneeded", "b", "true"] } else { &["0"] };
    words.iter().chain(slice).map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_gives_the_scope_this_process_and_its_subtree() {
        let words = call(Manager::User, "paceline-vae-7.scope", "vae", 42, false);
        assert_eq!(words.first().map(String::as_str), Some("--user"));
        let line = words.join(" ");
        assert!(line.contains(" PIDs au 1 42 ") && line.contains(" Delegate b true "), "{line}");
        // The signature is followed by the unit, the mode and the number of properties.
        let at = words.iter().position(|word| word == "fail").unwrap();
        let count: usize = words[at + 1].parse().unwrap();
        let properties = ["Description", "PIDs", "Slice", "Delegate", "CollectMode"];
        assert_eq!(count, properties.len());
        assert!(properties.iter().all(|property| words.iter().any(|word| word == property)));
        assert!(line.ends_with(" inactive-or-failed 0"), "{line}");
    }

    #[test]
    fn first_job_brings_a_slice_that_ends_with_the_last_one() {
        let line = call(Manager::System, "paceline-vae-7.scope", "vae", 42, true).join(" ");
        let slice = " inactive-or-failed 1 paceline.slice 1 StopWhenUnneeded b true";
        assert!(line.ends_with(slice), "{line}");
    }

    #[test]
    fn call_is_repeated_only_while_the_slice_comes_or_goes() {
        let loaded = "Call failed: Unit paceline.slice was already loaded or has a fragment file.";
        assert_eq!(next(loaded, true), Some(false));
        // Then it is the scope that is there.
        assert_eq!(next(loaded, false), None);
        let stopping = "Call failed: Transaction for a.scope/start is destructive (paceline.slice \
                        has 'stop' job queued, but 'start' is included in transaction).";
        assert_eq!(next(stopping, false), Some(true));
        assert_eq!(next("Call failed: Unit paceline.slice not found.", false), Some(true));
        assert_eq!(next("Call failed: Access denied", false), None);
    }

    #[test]
    fn missing_manager_and_missing_bus_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        for runtime in [None, Some(folder.path())] {
            let missing = user_bus(runtime, 7).unwrap_err();
            assert!(missing.advice.contains("enable-linger"), "{missing}");
        }
        fs::create_dir(folder.path().join("systemd")).unwrap();
        let missing = user_bus(Some(folder.path()), 7).unwrap_err();
        assert!(missing.advice.contains("dbus-user-session"), "{missing}");
        fs::write(folder.path().join("bus"), "").unwrap();
        assert_eq!(user_bus(Some(folder.path()), 7), Ok(folder.path().join("bus")));
    }
}
