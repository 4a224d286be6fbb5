use std::path::{Path, PathBuf};

use super::*;

fn folder_of(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let path = folder.path().to_owned();
    (folder, path)
}

fn v1(files: &[(&str, &str)]) -> (tempfile::TempDir, Cgroup) {
    let (folder, path) = folder_of(files);
    let group = Folders::V1 { cpu: path.clone(), cpuacct: path.clone(), memory: Some(path) };
    (folder, Cgroup { folders: group, path: PathBuf::from("/a") })
}

fn v2(files: &[(&str, &str)]) -> (tempfile::TempDir, Cgroup) {
    let (folder, path) = folder_of(files);
    (folder, Cgroup { folders: Folders::V2(path), path: PathBuf::from("/a") })
}

const V1: [(&str, &str); 4] = [
    ("cpu.cfs_quota_us", "50000\n"),
    ("cpu.cfs_period_us", "100000\n"),
    ("cpuacct.usage", "2500000000\n"),
    ("cpu.stat", "nr_periods 40\nnr_throttled 20\nthrottled_time 9000000000\n"),
];

#[test]
fn version_1_is_read() {
    let (_folder, group) = v1(&V1);
    let quota = group.quota().unwrap();
    assert_eq!(quota, Quota { quota: Some(50_000), period: 100_000 });
    assert_eq!(quota.share(2.0), Share::nearest(0.25));
    let used = group.used().unwrap();
    let expected = Used { cpu_seconds: 2.5, throttled_seconds: 2.0, memory: None };
    assert_eq!(used, expected);
}

#[test]
fn version_1_without_a_limit_is_read_and_written() {
    let (folder, group) = v1(&V1);
    fs::write(folder.path().join("cpu.cfs_quota_us"), "-1\n").unwrap();
    assert_eq!(group.quota().unwrap().share(2.0), Share::ALL);
    group.set_quota(Quota { quota: Some(30_000), period: 100_000 }).unwrap();
    assert_eq!(group.quota().unwrap().quota, Some(30_000));
}

#[test]
fn version_2_is_read_and_written() {
    let (_folder, group) = v2(&[
        (
            "cpu.stat",
            "usage_usec 1500000\nuser_usec 900000\nnr_periods 10\nnr_throttled 5\nthrottled_usec 70\n",
        ),
        ("cpu.max", "max 100000\n"),
        ("memory.current", "4096\n"),
    ]);
    assert_eq!(group.quota().unwrap(), Quota { quota: None, period: 100_000 });
    let expected = Used { cpu_seconds: 1.5, throttled_seconds: 0.5, memory: Some(4096) };
    assert_eq!(group.used().unwrap(), expected);
    group.set_quota(Quota { quota: Some(5000), period: 100_000 }).unwrap();
    assert_eq!(group.quota().unwrap().share(1.0), Share::nearest(0.05));
}

#[test]
fn version_2_limit_is_lifted_and_the_period_kept() {
    let (folder, group) = v2(&[("cpu.max", "45000 50000\n")]);
    let quota = group.quota().unwrap();
    assert_eq!(quota, Quota { quota: Some(45_000), period: 50_000 });
    group.set_quota(Quota { quota: None, ..quota }).unwrap();
    assert_eq!(fs::read_to_string(folder.path().join("cpu.max")).unwrap(), "max 50000");
    assert_eq!(group.quota().unwrap(), Quota { quota: None, period: 50_000 });
}

#[test]
fn cpu_use_is_read_where_version_2_counts_no_memory() {
    let (_folder, group) = v2(&[
        ("cpu.stat", "usage_usec 7\nnr_periods 0\nnr_throttled 0\n"),
        ("cpu.max", "max 100000\n"),
    ]);
    let expected = Used { cpu_seconds: 7e-6, throttled_seconds: 0.0, memory: None };
    assert_eq!(group.used().unwrap(), expected);
}

#[test]
fn incomplete_limit_of_version_2_is_malformed() {
    for text in ["", "max", "50000", "many 100000", "-1 100000", "50000 often"] {
        let (_folder, group) = v2(&[("cpu.max", text)]);
        let error = group.quota().unwrap_err().to_string();
        assert!(error.contains("cpu.max holds"), "{text:?}: {error}");
    }
}

#[test]
fn malformed_file_is_named() {
    let (folder, group) = v1(&V1);
    fs::write(folder.path().join("cpuacct.usage"), "many\n").unwrap();
    assert!(group.used().unwrap_err().to_string().contains("cpuacct.usage"));
}

#[test]
fn weights_are_on_the_kernels_scale() {
    let (_folder, group) = v1(&[("cpu.shares", "1024\n")]);
    assert_eq!((group.weight().unwrap(), group.weight_of(1)), (1024, 2));
    group.set_weight(group.weight_of(512)).unwrap();
    assert_eq!(group.weight().unwrap(), 512);
    let (_folder, unified) = v2(&[("cpu.weight", "100\n")]);
    assert_eq!(unified.weight().unwrap(), 100);
    unified.set_weight(unified.weight_of(512)).unwrap();
    assert_eq!(unified.weight().unwrap(), 50);
    let weights = [2, 256, 512, 1024, 262_144].map(|shares| unified.weight_of(shares));
    assert_eq!(weights, [1, 25, 50, 100, 10_000], "the default stays the default");
    assert_eq!(
        [1, 50, 100, 10_000].map(|weight| unified.shares_of(weight)),
        [10, 512, 1024, 102_400]
    );
    assert_eq!([1, 1024].map(|weight| group.shares_of(weight)), [2, 1024]);
}

#[test]
fn limits_that_differ_by_rounding_are_equal() {
    let quota = |quota, period| Quota { quota, period };
    assert!(quota(Some(50_000), 100_000).is_near(quota(Some(25_100), 50_000)));
    assert!(!quota(Some(50_000), 100_000).is_near(quota(Some(51_000), 100_000)));
    assert!(quota(None, 100_000).is_near(quota(None, 50_000)));
    assert!(!quota(None, 100_000).is_near(quota(Some(200_000), 100_000)));
}

#[test]
fn block_io_weight_has_the_scale_of_the_existing_file() {
    let folder = tempfile::tempdir().unwrap();
    let proc = folder.path().join("7");
    fs::create_dir_all(folder.path().join("self")).unwrap();
    fs::create_dir_all(&proc).unwrap();
    fs::write(proc.join("cgroup"), "0::/docker/4f2a\n").unwrap();
    fs::write(folder.path().join("self/mountinfo"), "").unwrap();
    let find = || block_io::IoWeight::for_container(folder.path(), (7, "4f2a"), folder.path());
    assert_eq!(find(), None);
    fs::write(folder.path().join("io.bfq.weight"), "default 100\n8:0 200\n").unwrap();
    let weight = find().unwrap();
    assert_eq!((weight.get().unwrap(), weight.like(512, 1024)), (100, 50));
    fs::write(folder.path().join("blkio.weight"), "500\n").unwrap();
    let weight = find().unwrap();
    assert_eq!((weight.like(2048, 1024), weight.like(2, 1024)), (1000, 10));
    weight.set(250).unwrap();
    assert_eq!(weight.get().unwrap(), 250);
}

/// A machine whose unified hierarchy has the group `/docker/4f2a/init` of process 7.
fn machine(of: &Path) -> PathBuf {
    let (proc, groups) = (of.join("proc"), of.join("cgroup"));
    fs::create_dir_all(proc.join("self")).unwrap();
    fs::create_dir_all(proc.join("7")).unwrap();
    fs::create_dir_all(proc.join("sys/kernel/random")).unwrap();
    fs::write(proc.join("sys/kernel/random/boot_id"), "first\n").unwrap();
    fs::write(proc.join("7/cgroup"), "0::/docker/4f2a/init\n").unwrap();
    let mount = format!("1 1 0:1 / {} rw - cgroup2 cgroup rw\n", groups.display());
    fs::write(proc.join("self/mountinfo"), mount).unwrap();
    for group in ["docker/4f2a", "docker/4f2a/init"] {
        fs::create_dir_all(groups.join(group)).unwrap();
        fs::write(groups.join(group).join("cpu.max"), "max 100000\n").unwrap();
        fs::write(groups.join(group).join("cpu.weight"), "100\n").unwrap();
    }
    proc
}

#[test]
fn limit_is_written_to_the_group_that_the_engine_made() {
    let folder = tempfile::tempdir().unwrap();
    let proc = machine(folder.path());
    let group = Cgroup::for_container(&proc, 7, "4f2a").unwrap();
    assert!(group.cpu_folder().ends_with("cgroup/docker/4f2a"), "{group:?}");
    let inner = Cgroup::for_process(&proc, 7).unwrap();
    assert!(inner.cpu_folder().ends_with("docker/4f2a/init"));
    group.check_writable().unwrap();
    fs::remove_file(group.cpu_folder().join("cpu.weight")).unwrap();
    assert!(group.check_writable().unwrap_err().kind() == io::ErrorKind::NotFound);
}

/// The container has ended, and its process's number was given to another one.
#[test]
fn process_of_another_container_or_of_none_shows_no_group() {
    let folder = tempfile::tempdir().unwrap();
    let proc = machine(folder.path());
    for (group, text) in [
        ("another container's", "0::/docker/4f2a/init\n"),
        ("a service's", "0::/docker\n"),
        ("the machine's", "0::/\n"),
        ("the container's, ended since", "0::/docker/77aa\n"),
    ] {
        fs::write(proc.join("7/cgroup"), text).unwrap();
        let error = Cgroup::for_container(&proc, 7, "77aa").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound, "{group}: {error}");
        let io = block_io::IoWeight::for_container(&proc, (7, "77aa"), folder.path());
        assert_eq!(io, None, "{group}");
    }
}

#[test]
fn remembered_group_is_found_until_it_ends_or_the_machine_does() {
    let folder = tempfile::tempdir().unwrap();
    let proc = machine(folder.path());
    let group = Cgroup::for_container(&proc, 7, "4f2a").unwrap();
    let remembered = group.instance(&proc).unwrap();
    assert_eq!(remembered.find(&proc), Found::Here(group.clone()));
    let own = folder.path().join("cgroup/docker/4f2a");
    // The new folder exists before the old one is removed, so that its number differs.
    fs::rename(&own, folder.path().join("old")).unwrap();
    assert_eq!(remembered.find(&proc), Found::Ended);
    fs::create_dir(&own).unwrap();
    fs::write(own.join("cpu.max"), "max 100000\n").unwrap();
    assert_eq!(remembered.find(&proc), Found::Replaced(group));
    fs::write(proc.join("sys/kernel/random/boot_id"), "second\n").unwrap();
    assert!(matches!(remembered.find(&proc), Found::Replaced(_)));
    fs::remove_dir_all(&own).unwrap();
    assert_eq!(remembered.find(&proc), Found::Ended);
    fs::write(proc.join("self/mountinfo"), "").unwrap();
    assert_eq!(remembered.find(&proc), Found::Unseen);
}

#[test]
fn group_of_another_namespace_that_is_missing_here_has_not_ended() {
    let folder = tempfile::tempdir().unwrap();
    let proc = machine(folder.path());
    let group = Cgroup::for_container(&proc, 7, "4f2a").unwrap();
    let before = group.instance(&proc).unwrap();
    fs::create_dir_all(proc.join("self/ns")).unwrap();
    fs::write(proc.join("self/ns/cgroup"), "").unwrap();
    let recorded = group.instance(&proc).unwrap();
    assert_eq!(recorded.find(&proc), Found::Here(group.clone()));
    assert_eq!(recorded, before, "records of an earlier version are of the same life");
    let own = folder.path().join("cgroup/docker/4f2a");
    fs::rename(&own, folder.path().join("old")).unwrap();
    // One without a namespace is of the machine's own one, which this is not.
    assert_eq!((recorded.find(&proc), before.find(&proc)), (Found::Ended, Found::Unseen));
    fs::write(proc.join("self/ns/other"), "").unwrap();
    fs::rename(proc.join("self/ns/other"), proc.join("self/ns/cgroup")).unwrap();
    assert_eq!(recorded.find(&proc), Found::Unseen);
    fs::create_dir(&own).unwrap();
    fs::write(own.join("cpu.max"), "max 100000\n").unwrap();
    assert_eq!(recorded.find(&proc), Found::Unseen, "another group has the same path here");
}

#[test]
fn engines_convert_weights_by_one_of_two_rules() {
    let both = |shares| WeightScale::Weight.by_engines(shares);
    assert_eq!([2, 1024, 262_144].map(both), [[1, 1], [39, 100], [10_000, 10_000]]);
    assert_eq!([102, 1641, 100_000].map(both), [[4, 17], [63, 146], [3815, 4340]]);
    assert_eq!(WeightScale::Shares.by_engines(1), [2, 2]);
    for shares in 2..262_144 {
        let (less, more) = (both(shares), both(shares + 1));
        assert!(less[0] <= more[0] && less[1] <= more[1], "{shares}");
    }
}
