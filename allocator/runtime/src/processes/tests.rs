use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

const ID: &str = "job-0123456789abcdef";

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
        let only = Some(Place::at(&self.path("jobs")));
        Processes { shared: Arc::new(Shared { proc: self.path("proc"), uid, only }), beside: None }
    }

    /// Records a job with these processes.
    fn job(&self, id: &str, name: &str, processes: &str) -> PathBuf {
        let group = self.path("groups/paceline").join(format!("{name}-{id}"));
        fs::create_dir_all(&group).unwrap();
        fs::write(group.join("cpu.max"), "max 100000\n").unwrap();
        fs::write(group.join("cgroup.procs"), processes).unwrap();
        let labels = [("paceline.weight", "2"), ("paceline.owner", "0"), ("other", "x")];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let groups = format!("0::/paceline/{name}-{id}\n");
        let record = Record::new(id.to_owned(), name.to_owned(), labels, groups);
        record.write(&Place::at(&self.path("jobs")).open().unwrap()).unwrap();
        group
    }
}

#[test]
fn ids_are_new_and_never_those_of_containers() {
    let (one, other) = (new_id().unwrap(), new_id().unwrap());
    assert!(one != other && is_job(&one) && is_job(&other), "{one} {other}");
    let of_container = "0123456789abcdef".repeat(4);
    for id in ["job-1", "job-0123456789ABCDEF", "job-0123456789abcdeff", &of_container, ""] {
        assert!(!is_job(id), "{id}");
    }
}

#[tokio::test]
async fn recorded_job_is_listed_and_described() {
    let machine = Machine::new();
    machine.job(ID, "vae", "8\n7\n");
    let processes = machine.processes(Machine::uid());
    assert_eq!(processes.opted_in(&[]).await.unwrap(), [ID]);
    for name in [ID, "vae", "job-0123"] {
        let found = processes.inspect(name).await.unwrap().unwrap();
        assert_eq!((found.id.as_str(), found.name.as_str(), found.pid), (ID, "vae", Some(7)));
        // The owner is the kernel's word.
        let labels: Vec<&str> = found.labels.keys().map(String::as_str).collect();
        assert_eq!(labels, ["other", "paceline.enable", "paceline.owner", "paceline.weight"]);
        assert_eq!(owner(&found), Some(Machine::uid()));
    }
    let weighed = processes.opted_in(&["paceline.weight=2".to_owned()]).await.unwrap();
    assert_eq!(weighed, [ID]);
    assert!(processes.opted_in(&["paceline.weight=3".to_owned()]).await.unwrap().is_empty());
    assert_eq!(processes.inspect("gru").await.unwrap(), None);
}

#[tokio::test]
async fn two_jobs_of_one_name_are_ambiguous() {
    let machine = Machine::new();
    machine.job(ID, "vae", "7\n");
    machine.job("job-fedcba9876543210", "vae", "8\n");
    let error = machine.processes(Machine::uid()).inspect("vae").await.unwrap_err();
    assert!(matches!(error, RuntimeError::Ambiguous(_)), "{error}");
}

#[tokio::test]
async fn ended_job_is_removed_with_its_files() {
    let machine = Machine::new();
    let group = machine.job(ID, "vae", "");
    fs::write(machine.path("jobs").join(socket(ID)), "").unwrap();
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
    machine.job(ID, "vae", "7\n");
    let other = machine.processes(Machine::uid() + 1);
    assert!(other.opted_in(&[]).await.unwrap().is_empty());
    assert_eq!(other.inspect(ID).await.unwrap(), None);
}

#[tokio::test]
async fn link_pipe_or_long_record_is_refused() {
    let machine = Machine::new();
    machine.job(ID, "vae", "7\n");
    let jobs = machine.path("jobs");
    let file = jobs.join(format!("{ID}.json"));
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
    assert_eq!(processes.opted_in(&[]).await.unwrap(), [ID]);
}

/// As root: a record that names the group of another user.
#[tokio::test]
async fn group_of_another_user_is_refused() {
    if Machine::uid() != 0 {
        return;
    }
    let machine = Machine::new();
    machine.job(ID, "vae", "7\n");
    let file = machine.path("jobs").join(format!("{ID}.json"));
    fs::set_permissions(machine.path("jobs"), fs::Permissions::from_mode(0o1777)).unwrap();
    let processes = machine.processes(0);
    std::os::unix::fs::chown(&file, Some(65_534), None).unwrap();
    assert!(processes.opted_in(&[]).await.unwrap().is_empty());
    let group = machine.path("groups/paceline").join(format!("vae-{ID}"));
    std::os::unix::fs::chown(&group, Some(65_534), None).unwrap();
    assert_eq!(processes.opted_in(&[]).await.unwrap(), [ID]);
    let found = processes.inspect(ID).await.unwrap().unwrap();
    assert_eq!(owner(&found), Some(65_534));
}

#[tokio::test]
async fn what_only_containers_have_is_refused_for_jobs() {
    let machine = Machine::new();
    let runtime = crate::Runtime::from(machine.processes(Machine::uid()));
    for refused in [
        runtime.pause(ID).await,
        runtime.remove(ID, false).await,
        runtime.update(ID, Change::CpuQuota(1000)).await,
        runtime.image("x").await.map(drop),
    ] {
        assert!(matches!(refused, Err(RuntimeError::Failed(_))), "{refused:?}");
    }
    runtime.update(ID, Change::StaysEnded).await.unwrap();
    assert!(runtime.stop(ID, 1).await.unwrap_err().is_missing());
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
    for number in 0..300 {
        fs::write(machine.path("jobs").join(format!("job-{number:016x}.json")), "{}").unwrap();
    }
    let folder = Place::at(&machine.path("jobs")).open().unwrap();
    assert_eq!(job::ids(&folder).len(), 256);
    // Root can make another user's record.
    if Machine::uid() == 0 {
        let other = machine.path("jobs").join(format!("{ID}.json"));
        fs::write(&other, "{}").unwrap();
        std::os::unix::fs::chown(&other, Some(65_534), None).unwrap();
        let ids = job::ids(&folder);
        assert!(ids.len() == 257 && ids.contains(&ID.to_owned()), "{}", ids.len());
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
    fs::write(folder.path().join(format!("{ID}.json")), "{}").unwrap();
    files("after");
    assert_eq!(job::ids(&Place::at(folder.path()).open().unwrap()), [ID]);
}
