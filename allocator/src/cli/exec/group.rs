//! Puts this process into the control group of a new job, and records the job.

use std::collections::BTreeMap;
use std::io::{PipeWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, anyhow};
use paceline_cgroup::job_group::{JobGroup, MakeError, make, make_in_own, own_job};
use paceline_runtime::processes::folder::{Folder, Place};
use paceline_runtime::processes::{Record, clean, new_id, socket};

use rustix::io::Errno;
use rustix::process::Pid;

use super::{REMOVE, scope};

/// The longest path that a socket can have, in bytes.
const MAX_SOCKET: usize = 100;
/// The most characters of a job's name in the name of its group.
const MAX_NAME: usize = 32;
/// The bytes of the file that shows whether a record can be written.
const PROBE: usize = 4096;
/// The label with the address of a job's endpoint.
const ENDPOINT: &str = "paceline.endpoint";
/// The variable that tells a reporter and the sidecar where to listen.
pub(super) const LISTEN: &str = "PACELINE_LISTEN";

/// Starts the process that waits for the job's end, detached: its parent ends at once, so the command
/// has no child that it does not know.
const DETACH: &str = r#"exec 3<&0; "$@" <&3 3<&- &"#;

/// The job that is wanted.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    pub(super) proc: &'a Path,
    pub(super) name: &'a str,
    pub(super) labels: BTreeMap<String, String>,
    /// Whether the user's or the machine's systemd was asked for.
    pub(super) user: bool,
    pub(super) system: bool,
}

/// A job whose group this process is in.
#[derive(Debug)]
pub(super) struct Managed {
    /// The socket for its endpoint; `None` if the user has given an address.
    pub(super) socket: Option<PathBuf>,
}

/// Enters a new group. The error says what is missing, and how to get it.
pub(super) fn enter(wanted: &Wanted<'_>) -> anyhow::Result<Managed> {
    let uid = rustix::process::geteuid().as_raw();
    anyhow::ensure!(
        !wanted.system || uid == 0,
        "--system needs root; leave it out to use the user's systemd"
    );
    if let Some(job) = own_job(wanted.proc) {
        return Err(MakeError::Nested(job).into());
    }
    let place = Place::own(uid);
    let shown = place.path().display().to_string();
    let hint = "set XDG_RUNTIME_DIR to a folder of the user, or ask root to start \
                `paceline run --runtime processes`";
    let unusable = |error| anyhow!("cannot record the job in {shown}: {error}; {hint}");
    place.make().map_err(unusable)?;
    let folder = place.open().map_err(unusable)?;
    clean(wanted.proc, &place, uid);
    let id = new_id().context("cannot make an id for the job; check /dev/urandom")?;
    let mut labels = wanted.labels.clone();
    let (endpoint, socket) = endpoint(&folder, &id);
    labels.extend(endpoint.map(|endpoint| (ENDPOINT.to_owned(), endpoint)));
    let record = |group: &JobGroup| {
        let record =
            Record::new(id.clone(), wanted.name.to_owned(), labels, group.text().to_owned());
        record.write(&folder).map_err(unusable)
    };
    let group_name = format!("{}-{id}", in_path(wanted.name));
    if scope::is_needed(wanted.proc) {
        let digits = id.trim_start_matches("job-");
        let unit = format!("paceline-{}-{digits}.scope", in_path(wanted.name));
        let manager = if wanted.system || (uid == 0 && !wanted.user) {
            scope::Manager::System
        } else {
            scope::Manager::User
        };
        scope::enter(wanted.proc, manager, &unit, wanted.name)?;
        record(&make_in_own(wanted.proc, &group_name, &id)?)?;
        // systemd removes the scope, and the next job what else is left.
        return Ok(Managed { socket });
    }
    // A process cannot easily leave a group again. So a full disk, or a limit on the size of files, is found
    // before there is one.
    let probe = format!("{id}.probe");
    folder.write(&probe, &" ".repeat(PROBE)).map_err(unusable)?;
    folder.remove(&probe).map_err(unusable)?;
    let made = make(wanted.proc, &group_name)?;
    // It must not be in the group that it waits for.
    let remover = match start_remover(&id) {
        Ok(remover) => remover,
        Err(error) => {
            made.undo();
            return Err(error)
                .context("cannot start /bin/sh, which removes the control group later");
        }
    };
    let entered = made.enter(wanted.proc, &id);
    // The command runs even if it cannot leave the group again, or be recorded: then the remover alone knows
    // the group.
    let sent = send_groups(remover, wanted.proc);
    record(&entered?)?;
    sent.context("the process that removes the control group has ended")?;
    Ok(Managed { socket })
}

/// Sends the lines with the groups of this process, which the command will be.
fn send_groups(mut remover: PipeWriter, proc: &Path) -> std::io::Result<()> {
    remover.write_all(&std::fs::read(proc.join("self/cgroup"))?)
}

/// Waits until the job has entered its group, and returns the lines with its groups.
pub(super) fn wait_for_start() -> anyhow::Result<String> {
    // A hangup of the terminal must not end this process before the job.
    let _leader_already: Result<Pid, Errno> = rustix::process::setsid();
    let mut groups = String::new();
    std::io::stdin().read_to_string(&mut groups).context("cannot read the job's groups")?;
    Ok(groups)
}

/// Starts the process that removes the group after the job. It reads the groups of the job.
fn start_remover(id: &str) -> std::io::Result<PipeWriter> {
    let (reader, writer) = std::io::pipe()?;
    let mut starter = Command::new("/bin/sh")
        .args(["-c", DETACH, "sh"])
        .arg(std::env::current_exe()?)
        .args([REMOVE, id])
        .current_dir("/")
        .stdin(reader)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let status = starter.wait()?;
    if status.success() { Ok(writer) } else { Err(std::io::Error::other(status.to_string())) }
}

/// The endpoint of a job, as its label has it, and the socket that must be listened on. An address that
/// the user has given stays.
fn endpoint(folder: &Folder, id: &str) -> (Option<String>, Option<PathBuf>) {
    let given = std::env::var(LISTEN).ok().filter(|given| !given.trim().is_empty());
    if let Some(given) = given {
        let port = given.rsplit_once(':').map(|(_, port)| port.to_owned());
        let endpoint = if given.starts_with("unix:") { Some(given) } else { port };
        return (endpoint, None);
    }
    let path = folder.path().join(socket(id));
    if path.as_os_str().len() > MAX_SOCKET {
        return (None, None);
    }
    (Some(format!("unix:{}", path.display())), Some(path))
}

/// A job's name as a part of a path and of a unit.
fn in_path(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    name.chars().map(plain).take(MAX_NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_becomes_a_plain_part_of_a_path() {
        assert_eq!(in_path("my vae/../x.scope"), "my_vae____x_scope");
        assert_eq!(in_path(&"ü".repeat(100)).len(), MAX_NAME);
    }
}
