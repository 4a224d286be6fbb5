use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

/// The id of a job of user `uid`.
fn id_of(uid: u32) -> String {
    record::id_from(uid, "0123456789abcdef")
}

/// The id of a job of the user who runs the tests.
fn id() -> String {
    id_of(Machine::uid())
}

/// Another one.
fn other_id() -> String {
    record::id_from(Machine::uid(), "fedcba9876543210")
}

/// A machine whose control groups of version 2 are a folder, and a folder of jobs.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        for folder in ["proc/self", "groups", "jobs"] {
            fs::create_dir_all(machine.path(folder)).unwrap();
        }
        let point = machine.path("groups");
        let mounts = format!("1 1 0:1 / {} rw - cgroup2 cgroup2 rw\n", point.display());
        fs::write(machine.path("proc/self/mountinfo"), mounts).unwrap();
        fs::write(machine.path("proc/stat"), "cpu 1 2\ncpu0 1 2\ncpu1 1 2\nintr 7\n").unwrap();
        fs::write(machine.path("proc/meminfo"), "MemTotal:     2048 kB\nMemFree: 1 kB\n").unwrap();
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn uid() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    fn processes(&self, uid: u32) -> Processes {
        self.processes_in(uid, &["jobs"])
    }

    fn processes_in(&self, uid: u32, folders: &[&str]) -> Processes {
        let only = Some(folders.iter().map(|folder| Place::at(&self.path(folder))).collect());
        Processes::of(Shared { proc: self.path("proc"), uid, only }, None)
    }

    /// Records a job with these processes.
    fn job(&self, id: &str, name: &str, processes: &str) -> PathBuf {
        self.job_in("jobs", id, name, processes)
    }

    fn job_in(&self, folder: &str, id: &str, name: &str, processes: &str) -> PathBuf {
        let group = self.path("groups/paceline").join(format!("{name}-{id}"));
        fs::create_dir_all(&group).unwrap();
        fs::write(group.join("cpu.max"), "max 100000\n").unwrap();
        fs::write(group.join("cgroup.procs"), processes).unwrap();
        let labels = [("paceline.weight", "2"), ("paceline.owner", "0"), ("other", "x")];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let groups = format!("0::/paceline/{name}-{id}\n");
        let record = Record::new(id.to_owned(), name.to_owned(), labels, groups);
        record.write(&Place::at(&self.path(folder)).open().unwrap()).unwrap();
        group
    }

    /// Gives all files of a job in a folder to a user.
    fn give(&self, folder: &str, group: &Path, id: &str, uid: u32) {
        for path in [self.path(folder).join(format!("{id}.json")), group.to_owned()] {
            std::os::unix::fs::chown(path, Some(uid), None).unwrap();
        }
    }
}

#[test]
fn ids_are_new_and_never_those_of_containers() {
    let (one, other) = (new_id().unwrap(), new_id().unwrap());
    assert!(one != other && is_job(&one) && is_job(&other), "{one} {other}");
    assert_eq!(record::user_of(&one), Some(Machine::uid()));
    let of_container = "0123456789abcdef".repeat(4);
    for id in ["job-1", "job-0123456789ABCDEF", "job-0123456789abcdeff", &of_container, ""] {
        assert!(!is_job(id), "{id}");
    }
}

#[tokio::test]
async fn recorded_job_is_listed_and_described() {
    let machine = Machine::new();
    let id = id();
    machine.job(&id, "vae", "8\n7\n");
    let processes = machine.processes(Machine::uid());
    assert_eq!(processes.opted_in(&[]).await.unwrap(), std::slice::from_ref(&id));
    for name in [id.as_str(), "vae", "job-0123"] {
        let found = processes.inspect(name).await.unwrap().unwrap();
        assert_eq!((&found.id, found.name.as_str(), found.pid), (&id, "vae", Some(7)));
        assert!(humantime::parse_rfc3339(&found.started_at).is_ok(), "{}", found.started_at);
        // The owner is the kernel's word.
        let labels: Vec<&str> = found.labels.keys().map(String::as_str).collect();
        assert_eq!(labels, ["other", "paceline.enable", "paceline.owner", "paceline.weight"]);
        assert_eq!(owner(&found), Some(Machine::uid()));
    }
    let weighed = processes.opted_in(&["paceline.weight=2".to_owned()]).await.unwrap();
    assert_eq!(weighed, [id]);
    assert!(processes.opted_in(&["paceline.weight=3".to_owned()]).await.unwrap().is_empty());
    assert_eq!(processes.inspect("gru").await.unwrap(), None);
}

#[tokio::test]
async fn two_jobs_of_one_name_are_ambiguous() {
    let machine = Machine::new();
    machine.job(&id(), "vae", "7\n");
    machine.job(&other_id(), "vae", "8\n");
    let error = machine.processes(Machine::uid()).inspect("vae").await.unwrap_err();
    assert!(matches!(error, RuntimeError::Ambiguous(_)), "{error}");
}

#[tokio::test]
async fn ended_job_is_removed_with_its_files() {
    let machine = Machine::new();
    let group = machine.job(&id(), "vae", "");
    fs::write(machine.path("jobs").join(socket(&id())), "").unwrap();
    let processes = machine.processes(Machine::uid());
    let left = || fs::read_dir(machine.path("jobs")).unwrap().count();
    // A group that cannot be removed yet keeps its record: unlike in the kernel's folders, files keep it here.
    assert!(processes.opted_in(&[]).await.unwrap().is_empty());
    assert!(group.exists() && left() == 2);
    fs::remove_dir_all(&group).unwrap();
    assert!(processes.opted_in(&[]).await.unwrap().is_empty());
    assert_eq!(left(), 0);
}

#[tokio::test]
async fn record_of_another_user_is_not_managed() {
    let machine = Machine::new();
    machine.job(&id(), "vae", "7\n");
    let other = machine.processes(Machine::uid() + 1);
    assert!(other.opted_in(&[]).await.unwrap().is_empty());
    assert_eq!(other.inspect(&id()).await.unwrap(), None);
}

/// Otherwise a user could take another user's job out of the allocator's sight, with its limit in force.
#[tokio::test]
async fn id_of_another_users_job_is_refused() {
    let machine = Machine::new();
    let id = id_of(Machine::uid() + 1);
    machine.job(&id, "forged", "7\n");
    let processes = machine.processes(Machine::uid());
    assert!(processes.opted_in(&[]).await.unwrap().is_empty());
    assert_eq!(processes.inspect(&id).await.unwrap(), None);
}

/// As root: two users have a record of one id.
#[tokio::test]
async fn forged_record_does_not_hide_the_job_of_its_id() {
    if Machine::uid() != 0 {
        return;
    }
    let (machine, victim, attacker) = (Machine::new(), 65_534, 65_533);
    fs::create_dir(machine.path("forged")).unwrap();
    let id = id_of(victim);
    for (folder, name, uid) in [("forged", "x", attacker), ("jobs", "vae", victim)] {
        let group = machine.job_in(folder, &id, name, "7\n");
        machine.give(folder, &group, &id, uid);
        std::os::unix::fs::chown(machine.path(folder), Some(uid), None).unwrap();
    }
    for folders in [["forged", "jobs"], ["jobs", "forged"]] {
        let processes = machine.processes_in(0, &folders);
        assert_eq!(processes.opted_in(&[]).await.unwrap(), std::slice::from_ref(&id));
        let found = processes.inspect(&id).await.unwrap().unwrap();
        assert_eq!((found.name.as_str(), owner(&found)), ("vae", Some(victim)));
    }
    // The name of a file in a shared folder is not enough either.
    fs::set_permissions(machine.path("forged"), fs::Permissions::from_mode(0o1777)).unwrap();
    let processes = machine.processes_in(0, &["forged", "jobs"]);
    assert_eq!(processes.inspect(&id).await.unwrap().unwrap().name, "vae");
}

#[tokio::test]
async fn job_that_is_recorded_twice_is_described_once() {
    let machine = Machine::new();
    fs::create_dir(machine.path("more")).unwrap();
    machine.job(&id(), "vae", "7\n");
    machine.job_in("more", &id(), "gru", "8\n");
    let processes = machine.processes_in(Machine::uid(), &["jobs", "more"]);
    assert_eq!(processes.opted_in(&[]).await.unwrap(), [id()]);
    assert_eq!(processes.inspect(&id()).await.unwrap().unwrap().name, "vae");
    assert_eq!(processes.inspect("gru").await.unwrap(), None);
}

#[tokio::test]
async fn job_is_never_older_than_its_record() {
    let machine = Machine::new();
    machine.job(&id(), "vae", "7\n");
    let file = machine.path("jobs").join(format!("{}.json", id()));
    let Ok(born) = fs::metadata(&file).unwrap().created() else {
        return;
    };
    let born = born.duration_since(UNIX_EPOCH).unwrap().as_secs();
    let text = fs::read_to_string(&file).unwrap();
    let mut record: serde_json::Value = serde_json::from_str(&text).unwrap();
    let processes = machine.processes(Machine::uid());
    // Years before, and more years after than a date can have.
    for said in [0.0_f64, -1.0, 1e300] {
        record["started_at"] = said.into();
        fs::write(&file, record.to_string()).unwrap();
        let found = processes.inspect(&id()).await.unwrap().unwrap();
        let started = humantime::parse_rfc3339(&found.started_at).unwrap();
        assert!(started.duration_since(UNIX_EPOCH).unwrap().as_secs() >= born, "{found:?}");
        let listed = processes.list(&[]).await.unwrap();
        assert!(listed.iter().all(|job| job.created >= i64::try_from(born).unwrap()), "{listed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn looks_at_all_jobs_follow_each_other() {
    let machine = Machine::new();
    machine.job(&id(), "vae", "7\n");
    let processes = machine.processes(Machine::uid());
    let turn = processes.turn.lock().await;
    let patience = std::time::Duration::from_mins(1);
    tokio::time::timeout(patience, processes.opted_in(&[])).await.unwrap_err();
    assert!(processes.inspect(&id()).await.unwrap().is_some(), "one job is not behind them");
    drop(turn);
    assert_eq!(processes.opted_in(&[]).await.unwrap(), [id()]);
}

#[tokio::test(start_paused = true)]
async fn begin_and_end_of_a_job_are_events() {
    let machine = Machine::new();
    let processes = machine.processes(Machine::uid());
    let (sender, mut events) = tokio::sync::mpsc::channel(8);
    let act = async {
        let group = machine.job(&id(), "vae", "7\n");
        assert_eq!(events.recv().await, Some(id()));
        fs::write(group.join("cgroup.procs"), "").unwrap();
        assert_eq!(events.recv().await, Some(id()));
    };
    tokio::select! {
        () = processes.follow(|event| sender.try_send(event.id).unwrap()) => unreachable!(),
        () = act => {}
    }
}

#[test]
fn files_of_a_killed_exec_are_removed_after_a_minute() {
    let machine = Machine::new();
    let (old, new, of_another) = (id(), other_id(), id_of(Machine::uid() + 1));
    let ends = ["json.part", "probe", "probe.part"];
    let files = |id: &str| ends.map(|end| machine.path("jobs").join(format!("{id}.{end}")));
    for file in [files(&old), files(&new), files(&of_another)].as_flattened() {
        fs::write(file, "").unwrap();
        if !files(&new).contains(file) {
            fs::File::options().write(true).open(file).unwrap().set_modified(UNIX_EPOCH).unwrap();
        }
    }
    let elsewhere = machine.path("jobs/notes.part");
    fs::write(&elsewhere, "").unwrap();
    clean(&machine.path("proc"), &Place::at(&machine.path("jobs")), Machine::uid());
    assert!(files(&old).iter().all(|file| !file.exists()));
    assert!(files(&new).iter().all(|file| file.exists()) && elsewhere.exists());
    // Root removes those of all users.
    assert!(files(&of_another).iter().all(|file| file.exists() == (Machine::uid() != 0)));
}

#[tokio::test]
async fn link_pipe_or_long_record_is_refused() {
    let machine = Machine::new();
    let id = id();
    machine.job(&id, "vae", "7\n");
    let jobs = machine.path("jobs");
    let file = jobs.join(format!("{id}.json"));
    let elsewhere = machine.path("elsewhere");
    fs::rename(&file, &elsewhere).unwrap();
    let processes = machine.processes(Machine::uid());
    symlink(&elsewhere, &file).unwrap();
    assert!(processes.opted_in(&[]).await.unwrap().is_empty(), "a link");
    fs::remove_file(&file).unwrap();
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert!(processes.opted_in(&[]).await.unwrap().is_empty(), "a pipe");
    fs::remove_file(&file).unwrap();
    fs::write(&file, " ".repeat(20_000) + &fs::read_to_string(&elsewhere).unwrap()).unwrap();
    assert!(processes.opted_in(&[]).await.unwrap().is_empty(), "too long");
    fs::rename(&elsewhere, &file).unwrap();
    assert_eq!(processes.opted_in(&[]).await.unwrap(), [id]);
}

/// As root: a record that names the group of another user.
#[tokio::test]
async fn group_of_another_user_is_refused() {
    if Machine::uid() != 0 {
        return;
    }
    let (machine, id) = (Machine::new(), id_of(65_534));
    machine.job(&id, "vae", "7\n");
    let file = machine.path("jobs").join(format!("{id}.json"));
    fs::set_permissions(machine.path("jobs"), fs::Permissions::from_mode(0o1777)).unwrap();
    let processes = machine.processes(0);
    std::os::unix::fs::chown(&file, Some(65_534), None).unwrap();
    assert!(processes.opted_in(&[]).await.unwrap().is_empty());
    let group = machine.path("groups/paceline").join(format!("vae-{id}"));
    std::os::unix::fs::chown(&group, Some(65_534), None).unwrap();
    assert_eq!(processes.opted_in(&[]).await.unwrap(), std::slice::from_ref(&id));
    let found = processes.inspect(&id).await.unwrap().unwrap();
    assert_eq!(owner(&found), Some(65_534));
}

#[tokio::test]
async fn what_only_containers_have_is_refused_for_jobs() {
    let machine = Machine::new();
    let runtime = crate::Runtime::from(machine.processes(Machine::uid()));
    for refused in [
        runtime.pause(&id()).await,
        runtime.remove(&id(), false).await,
        runtime.update(&id(), Change::CpuQuota(1000)).await,
        runtime.image("x").await.map(drop),
    ] {
        assert!(matches!(refused, Err(RuntimeError::Failed(_))), "{refused:?}");
    }
    runtime.update(&id(), Change::StaysEnded).await.unwrap();
    assert!(runtime.stop(&id(), 1).await.unwrap_err().is_missing());
}

#[tokio::test]
async fn machine_is_described_by_its_proc() {
    let machine = Machine::new();
    let described = machine.processes(Machine::uid()).describe().await.unwrap();
    assert_eq!((described.cpus, described.memory), (Some(2), Some(2048 * 1024)));
    assert_eq!(described.id.as_deref(), Some("processes"));
}

#[test]
fn allocator_of_a_user_is_noticed_as_long_as_it_lives() {
    let machine = Machine::new();
    let folder = Place::at(&machine.path("jobs")).open().unwrap();
    let uid = Machine::uid();
    assert!(!managers::manages(&folder, uid));
    let file =
        fs::File::create(machine.path("jobs").join(format!("allocator-{uid}.lock"))).unwrap();
    assert!(!managers::manages(&folder, uid), "it has ended");
    file.lock().unwrap();
    assert!(managers::manages(&folder, uid));
    // A lock that another user has made says nothing about this one.
    assert!(!managers::manages(&folder, uid + 1));
    drop(file);
    assert!(!managers::manages(&folder, uid));
}

#[test]
fn jobs_of_one_user_are_bounded() {
    let machine = Machine::new();
    fs::set_permissions(machine.path("jobs"), fs::Permissions::from_mode(0o1777)).unwrap();
    let (own, other) = (Machine::uid(), id_of(65_534));
    for number in 0..300 {
        // Names with another user's number do not count for that user.
        for uid in [own, 65_534] {
            let id = record::id_from(uid, &format!("{number:03x}{}", "f".repeat(13)));
            fs::write(machine.path("jobs").join(format!("{id}.json")), "{}").unwrap();
        }
    }
    let folder = Place::at(&machine.path("jobs")).open().unwrap();
    assert_eq!(job::ids(&folder).len(), 256);
    // Root can make another user's record.
    if own == 0 {
        let file = machine.path("jobs").join(format!("{other}.json"));
        fs::write(&file, "{}").unwrap();
        std::os::unix::fs::chown(&file, Some(65_534), None).unwrap();
        let ids = job::ids(&folder);
        assert!(ids.len() == 257 && ids.contains(&other), "{}", ids.len());
    }
}

#[test]
fn files_of_other_names_hide_no_jobs() {
    let memory = tempfile::tempdir_in("/dev/shm");
    let folder = memory.or_else(|_| tempfile::tempdir()).unwrap();
    let files = |part: &str| {
        for number in 0..5000 {
            fs::File::create(folder.path().join(format!("{part}-{number}.json"))).unwrap();
        }
    };
    files("before");
    fs::write(folder.path().join(format!("{}.json", id())), "{}").unwrap();
    files("after");
    assert_eq!(job::ids(&Place::at(folder.path()).open().unwrap()), [id()]);
}
