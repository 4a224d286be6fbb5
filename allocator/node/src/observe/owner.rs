//! Checks which container a listening socket belongs to.
//!
//! On a network that several containers share, any process may have taken a port, to impersonate the
//! job of another container. So every listener on the port must belong to the job's container, or to a
//! container that is labelled as its sidecar.
//!
//! In version 2 of control groups the kernel says in which group a socket was created. In version 1 the
//! socket must be open in a process of the container: the processes are searched, within a budget of
//! work for each job.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, io};

use paceline_api::clock::Clock;
use paceline_cgroup::Cgroup;
use paceline_policy::Moment;

use super::calls::Cancelled;
use super::listeners::{self, Listener};

/// The most open files, processes and groups that are looked at for one job in one go …
const MAX_WORK: f64 = 65_536.0;
/// … and in each second on average.
const WORK_RATE: f64 = MAX_WORK / 60.0;
/// The id of the root of all groups. The kernel names it where it does not track the groups of sockets.
const ROOT_GROUP: u64 = 1;
/// How often a search checks whether it is cancelled: after this many steps.
const CANCEL_STEPS: u64 = 256;

/// The work that may still be done to find out who listens for one job.
#[derive(Clone, Debug)]
pub(crate) struct SearchBudget {
    clock: Clock,
    budget: Arc<Mutex<Budget>>,
}

#[derive(Debug)]
struct Budget {
    left: f64,
    since: Moment,
    /// The process that had the socket open last time: it is searched first.
    holder: Option<u32>,
}

/// Why a listener is not accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotOwned {
    /// A socket belongs to none of the containers.
    #[error("port {0} is not the container's own")]
    Stranger(u16),
    /// The container has too many processes or open files.
    #[error(
        "port {0} cannot be shown to be the container's own: it has too many processes or open \
         files to search now"
    )]
    TooMuch(u16),
    /// The search failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Default for SearchBudget {
    fn default() -> Self {
        let clock = Clock::start();
        let budget = Budget { left: MAX_WORK, since: clock.now(), holder: None };
        Self { clock, budget: Arc::new(Mutex::new(budget)) }
    }
}

impl SearchBudget {
    fn with<T>(&self, act: impl FnOnce(&mut Budget) -> T) -> T {
        let mut budget = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
        budget.regain(self.clock.now());
        act(&mut budget)
    }
}

impl Budget {
    /// Adds the work that has become possible since the last time.
    fn regain(&mut self, now: Moment) {
        let gained = now.seconds_since(self.since) * WORK_RATE;
        (self.left, self.since) = ((self.left + gained).min(MAX_WORK), now);
    }
}

/// The folder of the control group that the engine made for container `id`, whose first process is
/// `pid`. The process may have moved into a group below it. One that is in none is not the container's.
pub(crate) fn group_folder(proc: &Path, pid: u32, id: &str) -> io::Result<(u8, PathBuf)> {
    let group = Cgroup::for_container(proc, pid, id)?;
    Ok((group.version(), group.cpu_folder().to_owned()))
}

/// Fails unless all listeners on `port` of the loopback belong to the control groups `folders`, of this
/// version. The calling thread must be in the network of process `pid`.
pub(crate) fn ensure_listens(
    proc: &Path,
    (pid, port): (u32, u16),
    (version, folders): (u8, &[PathBuf]),
    budget: &SearchBudget,
    cancelled: &Cancelled,
) -> Result<(), NotOwned> {
    let sockets = listeners::on_port(proc, pid, port)?;
    if sockets.is_empty() {
        return Err(NotOwned::Stranger(port));
    }
    let (left, holder) = budget.with(|budget| (budget.left, budget.holder));
    let mut search = Search { proc, port, left, steps: 0, cancelled };
    let owned = search.owned(version, folders, &sockets, holder);
    let left = search.left;
    budget.with(|budget| {
        budget.left = left;
        if let Ok(holder) = &owned {
            budget.holder = *holder;
        }
    });
    owned.map(drop)
}

/// One search for the owners of sockets.
struct Search<'a> {
    proc: &'a Path,
    port: u16,
    left: f64,
    steps: u64,
    cancelled: &'a Cancelled,
}

impl Search<'_> {
    /// Takes one step of work off the budget.
    fn step(&mut self) -> Result<(), NotOwned> {
        self.steps += 1;
        if self.steps.is_multiple_of(CANCEL_STEPS) {
            self.cancelled.check()?;
        }
        self.left -= 1.0;
        if self.left < 0.0 { Err(NotOwned::TooMuch(self.port)) } else { Ok(()) }
    }

    /// Fails unless all sockets belong to the groups. Returns a process that has the last one open, if
    /// processes were searched.
    fn owned(
        &mut self,
        version: u8,
        folders: &[PathBuf],
        sockets: &[Listener],
        holder: Option<u32>,
    ) -> Result<Option<u32>, NotOwned> {
        let known = |socket: &Listener| socket.group.filter(|group| *group != ROOT_GROUP);
        let groups: Option<BTreeSet<u64>> = sockets.iter().map(known).collect();
        if let Some(mut groups) = groups.filter(|_| version == 2) {
            self.below(folders, |_, folder| {
                groups.remove(&fs::metadata(folder)?.ino());
                Ok(groups.is_empty())
            })?;
            return if groups.is_empty() { Ok(None) } else { Err(NotOwned::Stranger(self.port)) };
        }
        let mut sockets: BTreeSet<u64> = sockets.iter().map(|socket| socket.inode).collect();
        let mut members = Vec::new();
        self.below(folders, |search, folder| {
            let text = fs::read_to_string(folder.join("cgroup.procs"))?;
            for pid in text.lines().filter_map(|line| line.parse::<u32>().ok()) {
                search.step()?;
                members.push(pid);
            }
            Ok(false)
        })?;
        // The holder may have left the container since, so it must still be a member.
        if let Some(at) = members.iter().position(|member| Some(*member) == holder) {
            members.swap(0, at);
        }
        for member in members {
            if self.closes(member, &mut sockets)? {
                return Ok(Some(member));
            }
        }
        Err(NotOwned::Stranger(self.port))
    }

    /// Visits the groups and all groups below them, until `visit` is done.
    fn below(
        &mut self,
        folders: &[PathBuf],
        mut visit: impl FnMut(&mut Self, &Path) -> Result<bool, NotOwned>,
    ) -> Result<(), NotOwned> {
        let mut open = folders.to_vec();
        while let Some(folder) = open.pop() {
            self.step()?;
            if visit(self, &folder)? {
                return Ok(());
            }
            for entry in fs::read_dir(&folder)?.flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    self.step()?;
                    open.push(entry.path());
                }
            }
        }
        Ok(())
    }

    /// Takes out the sockets that a process has open; returns whether none is left. A process that has
    /// just ended has no open files.
    fn closes(&mut self, pid: u32, sockets: &mut BTreeSet<u64>) -> Result<bool, NotOwned> {
        let Ok(files) = fs::read_dir(self.proc.join(pid.to_string()).join("fd")) else {
            return Ok(false);
        };
        for file in files.flatten() {
            self.step()?;
            let Ok(link) = fs::read_link(file.path()) else { continue };
            let inode = link.to_str().and_then(|link| link.strip_prefix("socket:["));
            let inode = inode.and_then(|inode| inode.strip_suffix(']')?.parse::<u64>().ok());
            if inode.is_some_and(|inode| sockets.remove(&inode)) && sockets.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    const PORT: u16 = 7223;

    /// A `/proc` and control groups with processes that have sockets open.
    struct Machine(TempDir);

    impl Machine {
        /// Each process with the name of its group and the inodes of its sockets.
        fn with(processes: &[(u32, &str, &[u64])]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            for (pid, group, sockets) in processes {
                let files = folder.path().join(format!("proc/{pid}/fd"));
                fs::create_dir_all(&files).unwrap();
                for socket in *sockets {
                    let link = format!("socket:[{socket}]");
                    symlink(link, files.join(socket.to_string())).unwrap();
                }
                let group = folder.path().join("groups").join(group);
                fs::create_dir_all(&group).unwrap();
                let procs = group.join("cgroup.procs");
                let before = fs::read_to_string(&procs).unwrap_or_default();
                fs::write(procs, format!("{before}{pid}\n")).unwrap();
            }
            Self(folder)
        }

        fn group(&self, name: &str) -> PathBuf {
            self.0.path().join("groups").join(name)
        }

        fn search(
            &self,
            left: f64,
            version: u8,
            group: &str,
            sockets: &[Listener],
        ) -> (Result<Option<u32>, NotOwned>, f64) {
            let (proc, cancelled) = (self.0.path().join("proc"), Cancelled::default());
            let mut search =
                Search { proc: &proc, port: PORT, left, steps: 0, cancelled: &cancelled };
            let found = search.owned(version, &[self.group(group)], sockets, Some(9));
            (found, search.left)
        }
    }

    fn socket(inode: u64) -> Listener {
        Listener { inode, group: None }
    }

    #[test]
    fn socket_of_the_container_or_a_group_below_is_its_own() {
        let machine = Machine::with(&[(7, "a", &[]), (8, "a/below", &[11]), (9, "b", &[12])]);
        let owned = |group, sockets: &[Listener]| machine.search(100.0, 1, group, sockets).0;
        assert_eq!(owned("a", &[socket(11)]).unwrap(), Some(8));
        assert_eq!(owned("b", &[socket(12)]).unwrap(), Some(9));
        for (group, sockets) in [("a", &[12][..]), ("b", &[11]), ("a", &[11, 12]), ("a", &[13])] {
            let sockets: Vec<Listener> = sockets.iter().copied().map(socket).collect();
            let refused = owned(group, &sockets).unwrap_err();
            assert!(matches!(refused, NotOwned::Stranger(PORT)), "{group} {sockets:?}");
        }
    }

    #[test]
    fn kernel_is_believed_without_a_search_of_processes() {
        let machine = Machine::with(&[(7, "a/below", &[]), (9, "b", &[12])]);
        let of = |group: &str| {
            let group = Some(fs::metadata(machine.group(group)).unwrap().ino());
            [Listener { inode: 12, group }]
        };
        for (group, owner, owned) in
            [("a", "a", true), ("a", "a/below", true), ("a", "b", false), ("b", "b", true)]
        {
            let (found, left) = machine.search(10.0, 2, group, &of(owner));
            assert_eq!(found.is_ok(), owned, "{group} {owner}");
            assert!(left >= 6.0, "no process is searched: {left}");
        }
    }

    #[test]
    fn search_beyond_the_budget_is_given_up() {
        let many: Vec<u64> = (100..400).collect();
        let machine = Machine::with(&[(7, "a", &many), (8, "a", &[11])]);
        let (found, left) = machine.search(100.0, 1, "a", &[socket(11)]);
        assert!(matches!(found, Err(NotOwned::TooMuch(PORT))) && left < 0.0, "{found:?}");
        assert_eq!(machine.search(1000.0, 1, "a", &[socket(11)]).0.unwrap(), Some(8));
    }

    #[test]
    fn cancelled_search_ends() {
        let many: Vec<u64> = (100..1000).collect();
        let machine = Machine::with(&[(7, "a", &many)]);
        let (proc, cancelled) = (machine.0.path().join("proc"), Cancelled::for_test());
        let mut search =
            Search { proc: &proc, port: PORT, left: MAX_WORK, steps: 0, cancelled: &cancelled };
        let ended = search.owned(1, &[machine.group("a")], &[socket(1)], None).unwrap_err();
        assert!(matches!(ended, NotOwned::Io(_)), "{ended:?}");
        assert!(search.steps <= CANCEL_STEPS, "{}", search.steps);
    }

    #[test]
    fn used_budget_comes_back_with_time() {
        let mut budget = Budget { left: -1.0, since: Moment::default(), holder: None };
        budget.regain(Moment::from_seconds(30.0));
        assert!((MAX_WORK / 3.0..MAX_WORK / 1.9).contains(&budget.left), "{budget:?}");
        budget.regain(Moment::from_seconds(3600.0));
        assert!((MAX_WORK - 1.0..=MAX_WORK).contains(&budget.left), "{budget:?}");
    }
}
