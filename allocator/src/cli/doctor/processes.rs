//! Jobs outside containers: whether `paceline exec` can give them control groups here.

use std::fs;
use std::path::Path;
use std::process::Command;

use paceline_api::figures::counted;
use paceline_cgroup::job_group::{MakeError, make};
use paceline_runtime::processes::folder::runtime_folder;
use paceline_runtime::processes::{is_managed_by_root, new_id};
use paceline_runtime::{Description, Runtime};

use super::super::engine::EngineArgs;
use super::super::exec::launch::on_path;
use super::super::exec::scope::{self, Manager, user_bus};
use super::report::Finding;

/// Where the groups of systemd's units are.
const GROUPS: &str = "/sys/fs/cgroup";

/// The machine without a container engine.
pub(super) fn machine(description: &Description) -> Finding {
    let cpus = description.cpus.map_or_else(|| "unknown".to_owned(), |cpus| cpus.to_string());
    Finding::ok("engine", format!("none: jobs of `paceline exec` only, {cpus} CPUs"))
}

/// The jobs that run.
pub(super) async fn jobs(runtime: &Runtime) -> Finding {
    match runtime.opted_in(&[]).await {
        Ok(ids) if ids.is_empty() => Finding::ok("jobs", "no job of `paceline exec` runs"),
        Ok(ids) => Finding::ok("jobs", format!("running: {}", counted(ids.len(), "job"))),
        Err(error) => {
            let error = anyhow::Error::from(error);
            let advice = "check /run/paceline/jobs and the users' folders in /run/user";
            Finding::error("jobs", format!("cannot list jobs: {error:#}"), advice)
        }
    }
}

/// The user who manages own jobs.
pub(super) fn user(uid: u32) -> Finding {
    if is_managed_by_root(uid) {
        let found = format!("user {uid}, whose jobs root's allocator manages");
        let advice = "use `paceline set` and `paceline status`; a run with --user would not start";
        return Finding { advice: Some(advice.to_owned()), ..Finding::ok("user", found) };
    }
    Finding::ok("user", format!("user {uid}, who manages own jobs; this needs no root"))
}

/// What `paceline exec` would do.
pub(super) fn exec(args: &EngineArgs) -> Vec<Finding> {
    let uid = rustix::process::geteuid().as_raw();
    if !scope::is_needed(&args.proc) {
        return vec![group(&args.proc)];
    }
    let manager = if uid == 0 && !args.user { Manager::System } else { Manager::User };
    if on_path("busctl").is_none() {
        return vec![unmanaged("busctl is missing", scope::NO_BUSCTL)];
    }
    if manager == Manager::System {
        let given = delegated(Path::new(GROUPS), "the machine's systemd");
        return vec![given.unwrap_or_else(|| {
            let advice =
                "start the machine with cgroup v2 alone, and a kernel that has the controller";
            unmanaged("the cpu controller is not in the hierarchy of version 2", advice)
        })];
    }
    if let Err(missing) = user_bus(runtime_folder(uid).as_deref(), uid) {
        return vec![unmanaged(&missing.found, &missing.advice)];
    }
    let own = Path::new(GROUPS).join(format!("user.slice/user-{uid}.slice/user@{uid}.service"));
    let given = delegated(&own, "the user's systemd").unwrap_or_else(|| not_delegated(uid));
    std::iter::once(given).chain(logout(lingers(uid))).collect()
}

/// A job's group without systemd: it is made, and removed at once.
fn group(proc: &Path) -> Finding {
    let id = new_id().unwrap_or_else(|_| "job-0000000000000000".to_owned());
    match make(proc, &format!("doctor-{id}")) {
        Ok(made) => {
            made.undo();
            Finding::ok("exec", "each job gets a control group of its own")
        }
        Err(MakeError::Nested(job)) => {
            Finding::ok("exec", format!("this is a part of the job in group {job}"))
        }
        Err(error) => {
            let text = error.to_string();
            let (found, advice) = text.split_once("; ").unwrap_or((&text, "run it as root"));
            unmanaged(found, advice)
        }
    }
}

fn unmanaged(found: &str, advice: &str) -> Finding {
    Finding::error("exec", format!("jobs would run unmanaged: {found}"), advice)
}

/// Whether a manager may give its units the cpu controller; `None` if it may not.
fn delegated(own: &Path, manager: &str) -> Option<Finding> {
    let has = fs::read_to_string(own.join("cgroup.controllers")).unwrap_or_default();
    let has_cpu = has.split_whitespace().any(|it| it == "cpu");
    has_cpu.then(|| Finding::ok("exec", format!("{manager} gives each job a scope")))
}

fn not_delegated(uid: u32) -> Finding {
    unmanaged(
        &format!("the cpu controller is not delegated to user@{uid}.service"),
        "ask root for Delegate=yes in /etc/systemd/system/user@.service.d/delegate.conf, and log in again",
    )
}

/// The user's manager ends with the last session, and all jobs in its scopes with it.
fn logout(lingers: Option<bool>) -> Option<Finding> {
    lingers.filter(|lingers| !lingers).map(|_| {
        Finding::warning(
            "logout",
            "jobs of this user end with the user's last session, also in tmux",
            "run `loginctl enable-linger` once if they are to go on",
        )
    })
}

/// Whether the user's manager runs without a session; `None` if logind does not answer.
fn lingers(uid: u32) -> Option<bool> {
    let mut command = Command::new("loginctl");
    command.args(["show-user", &uid.to_string(), "--property=Linger", "--value"]);
    let output = command.output().ok().filter(|output| output.status.success())?;
    match String::from_utf8_lossy(&output.stdout).trim() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Level;
    use super::*;

    #[test]
    fn missing_delegation_is_an_error_with_the_file_to_write() {
        let own = tempfile::tempdir().unwrap();
        for controllers in ["", "memory pids\n", "cpuset memory\n"] {
            fs::write(own.path().join("cgroup.controllers"), controllers).unwrap();
            assert_eq!(delegated(own.path(), "systemd"), None, "{controllers}");
        }
        fs::write(own.path().join("cgroup.controllers"), "cpu memory pids\n").unwrap();
        assert_eq!(delegated(own.path(), "systemd").map(|found| found.level), Some(Level::Ok));
        let found = not_delegated(7);
        assert!(found.level == Level::Error && found.found.contains("user@7.service"), "{found:?}");
        assert!(found.advice.unwrap().contains("Delegate=yes"));
    }

    #[test]
    fn user_without_linger_is_warned_of_the_logout() {
        let warning = logout(Some(false)).unwrap();
        assert_eq!(warning.level, Level::Warning);
        assert!(warning.advice.unwrap().contains("enable-linger"));
        assert_eq!((logout(Some(true)), logout(None)), (None, None));
    }

    #[test]
    fn without_a_group_there_is_advice() {
        // As a user without rights it is an error with advice.
        let found = group(Path::new("/proc"));
        assert!(found.level == Level::Ok || found.advice.is_some(), "{found:?}");
        let missing = group(Path::new("/no/proc"));
        assert!(missing.level == Level::Error && missing.advice.is_some(), "{missing:?}");
    }
}
