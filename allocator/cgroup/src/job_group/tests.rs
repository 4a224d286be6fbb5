use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;

use super::*;

const ID: &str = "job-0123456789abcdef";
const NAME: &str = "vae-job-0123456789abcdef";

/// A machine with version 1, whose hierarchies are folders that make no files by themselves.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new(own: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let machine = Self(folder);
        fs::create_dir_all(machine.path("proc/self")).unwrap();
        let mut mounts = String::new();
        let mut groups = String::new();
        for controller in NEEDED {
            let point = machine.path(controller);
            fs::create_dir_all(point.join(own)).unwrap();
            let point = point.display();
            writeln!(mounts, "1 1 0:1 / {point} rw - cgroup cgroup rw,{controller}").unwrap();
            writeln!(groups, "1:{controller}:/{own}").unwrap();
        }
        fs::write(machine.path("proc/self/mountinfo"), mounts).unwrap();
        fs::write(machine.path("proc/self/cgroup"), groups).unwrap();
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Puts what the kernel would into a job's group.
    fn job(&self, own: &str) -> JobGroup {
        for controller in NEEDED {
            let folder = self.path(controller).join(own).join(PARENT).join(NAME);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("cpu.cfs_quota_us"), "-1\n").unwrap();
            fs::write(folder.join("cpu.cfs_period_us"), "100000\n").unwrap();
            fs::write(folder.join("cgroup.procs"), "7\n8\n").unwrap();
        }
        let text = NEEDED.map(|it| format!("1:{it}:/{own}/{PARENT}/{NAME}\n").replace("//", "/"));
        JobGroup::from_text(&self.path("proc"), ID, &text.concat()).unwrap()
    }
}

#[test]
fn group_is_found_by_its_text_in_all_hierarchies() {
    let machine = Machine::new("session");
    let job = machine.job("session");
    let folders = NEEDED.map(|it| machine.path(it).join("session/paceline").join(NAME));
    assert_eq!(job.folders, folders);
    assert_eq!(job.cgroup().cpu_folder(), folders[0]);
    assert_eq!(job.processes(), [7, 8]);
    let again = JobGroup::from_text(&machine.path("proc"), ID, job.text()).unwrap();
    assert_eq!(again, job);
}

#[test]
fn group_without_the_id_is_not_found() {
    let machine = Machine::new("");
    machine.job("");
    let proc = machine.path("proc");
    for text in ["1:cpu:/\n1:cpuacct:/\n", "1:cpu:/paceline/vae-job-0\n", ""] {
        JobGroup::from_text(&proc, ID, text).unwrap_err();
    }
    let outside = format!("1:cpu:/../{NAME}\n1:cpuacct:/../{NAME}\n");
    JobGroup::from_text(&proc, ID, &outside).unwrap_err();
}

#[test]
fn processes_below_the_group_count_and_are_bounded() {
    let machine = Machine::new("");
    let job = machine.job("");
    let inner = job.cgroup().cpu_folder().join("inner");
    fs::create_dir(&inner).unwrap();
    let many: Vec<String> = (0..2 * MAX_PROCESSES).map(|pid| pid.to_string()).collect();
    fs::write(inner.join("cgroup.procs"), many.join("\n")).unwrap();
    assert_eq!(job.processes().len(), MAX_PROCESSES);
    assert!(!job.is_empty());
}

#[test]
fn more_groups_than_are_looked_at_are_not_empty_and_can_be_removed() {
    let machine = Machine::new("user");
    let group = machine.job("user");
    let folder = group.cgroup().cpu_folder().to_owned();
    fs::write(folder.join("cgroup.procs"), "").unwrap();
    assert!(group.is_empty());
    let outer = folder.join("outer");
    for inner in 0..2 * MAX_GROUPS {
        fs::create_dir_all(outer.join(inner.to_string())).unwrap();
    }
    assert!(!group.is_empty(), "a process may be in one that is not looked at");
    // Version 2 says of all groups below whether there is one.
    fs::write(folder.join("cgroup.events"), "populated 0\nfrozen 0\n").unwrap();
    assert!(group.is_empty());
    fs::write(folder.join("cgroup.events"), "populated 1\nfrozen 0\n").unwrap();
    assert!(!group.is_empty());
    remove_with_all_below(&outer).unwrap();
    assert!(!outer.exists());
}

#[test]
fn last_job_takes_the_folder_of_all_with_it() {
    let machine = Machine::new("");
    let job = machine.job("");
    for folder in &job.folders {
        for file in fs::read_dir(folder).unwrap().flatten() {
            fs::remove_file(file.path()).unwrap();
        }
        fs::create_dir(folder.join("inner")).unwrap();
    }
    job.remove().unwrap();
    assert!(NEEDED.iter().all(|it| !machine.path(it).join(PARENT).exists()));
    job.remove().unwrap();
}

#[test]
fn folder_that_root_has_opened_to_users_stays() {
    let machine = Machine::new("");
    let job = machine.job("");
    let parent = machine.path("cpu").join(PARENT);
    fs::set_permissions(&parent, fs::Permissions::from_mode(0o1777)).unwrap();
    for folder in &job.folders {
        for file in fs::read_dir(folder).unwrap().flatten() {
            fs::remove_file(file.path()).unwrap();
        }
    }
    job.remove().unwrap();
    assert!(parent.exists() && !parent.join(NAME).exists());
}

#[test]
fn job_inside_a_job_is_noticed() {
    for (own, job) in [
        ("paceline/vae-job-7", Some("vae-job-7")),
        ("a/paceline-vae-7.scope/vae-job-7", Some("vae-job-7")),
        ("paceline.service", None),
        ("user.slice", None),
    ] {
        let machine = Machine::new(own);
        assert_eq!(own_job(&machine.path("proc")).as_deref(), job, "{own}");
    }
}

#[test]
fn machine_without_control_groups_is_named() {
    let machine = Machine::new("");
    fs::write(machine.path("proc/self/mountinfo"), "").unwrap();
    let error = make(&machine.path("proc"), NAME).unwrap_err();
    assert!(matches!(error, MakeError::NotMounted), "{error}");
}

/// The kernel makes no files in these folders, so the group cannot be used.
#[test]
fn group_that_cannot_be_used_is_not_left_behind() {
    let machine = Machine::new("");
    let made = make(&machine.path("proc"), NAME).unwrap();
    assert!(NEEDED.iter().all(|it| machine.path(it).join(PARENT).join(NAME).is_dir()));
    let error = made.enter(&machine.path("proc"), ID).unwrap_err();
    assert!(matches!(error, MakeError::Io(..)), "{error}");
    for controller in NEEDED {
        let folder = machine.path(controller).join(PARENT).join(NAME);
        // What was written as a process's entry is a plain file here.
        assert!(!folder.join("cpu.cfs_quota_us").exists());
    }
}

#[test]
fn errors_name_the_cause_and_what_to_do() {
    let denied = MakeError::Denied("/c/paceline /a/paceline".to_owned()).to_string();
    assert_eq!(
        denied,
        "cannot make a control group in /c/paceline /a/paceline: permission denied; run it as root, or ask \
         root for `mkdir -p /c/paceline /a/paceline && chmod 1777 /c/paceline /a/paceline`"
    );
    let busy = MakeError::Busy("/sys/fs/cgroup".into()).to_string();
    assert!(busy.contains("processes of its own; move them"), "{busy}");
}
