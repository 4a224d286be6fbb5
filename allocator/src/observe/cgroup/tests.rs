use std::path::PathBuf;

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
    (folder, Cgroup(group))
}

fn v2(files: &[(&str, &str)]) -> (tempfile::TempDir, Cgroup) {
    let (folder, path) = folder_of(files);
    (folder, Cgroup(Folders::V2(path)))
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
fn version_1_without_a_limit() {
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
fn version_2_lifts_a_limit_by_a_word_and_keeps_the_period() {
    let (folder, group) = v2(&[("cpu.max", "45000 50000\n")]);
    let quota = group.quota().unwrap();
    assert_eq!(quota, Quota { quota: Some(45_000), period: 50_000 });
    group.set_quota(Quota { quota: None, ..quota }).unwrap();
    assert_eq!(fs::read_to_string(folder.path().join("cpu.max")).unwrap(), "max 50000");
    assert_eq!(group.quota().unwrap(), Quota { quota: None, period: 50_000 });
}

#[test]
fn where_version_2_does_not_count_memory_the_use_of_the_cpu_is_known_all_the_same() {
    let (_folder, group) = v2(&[
        ("cpu.stat", "usage_usec 7\nnr_periods 0\nnr_throttled 0\n"),
        ("cpu.max", "max 100000\n"),
    ]);
    let expected = Used { cpu_seconds: 7e-6, throttled_seconds: 0.0, memory: None };
    assert_eq!(group.used().unwrap(), expected);
    assert!(group.memory_limit().is_err() && group.memory_peak().is_err());
}

#[test]
fn half_a_limit_of_version_2_is_malformed() {
    for text in ["", "max", "50000", "many 100000", "-1 100000", "50000 often"] {
        let (_folder, group) = v2(&[("cpu.max", text)]);
        let error = group.quota().unwrap_err().to_string();
        assert!(error.contains("cpu.max holds"), "{text:?}: {error}");
    }
}

#[test]
fn a_malformed_file_is_named() {
    let (folder, group) = v1(&V1);
    fs::write(folder.path().join("cpuacct.usage"), "many\n").unwrap();
    assert!(group.used().unwrap_err().to_string().contains("cpuacct.usage"));
}

#[test]
fn weights_are_in_the_kernels_measure() {
    let (_folder, group) = v1(&[("cpu.shares", "1024\n")]);
    assert_eq!((group.weight().unwrap(), group.weight_of(1)), (1024, 2));
    group.set_weight(group.weight_of(512)).unwrap();
    assert_eq!(group.weight().unwrap(), 512);
    let (_folder, unified) = v2(&[("cpu.weight", "100\n")]);
    assert_eq!(unified.weight().unwrap(), 100);
    unified.set_weight(unified.weight_of(512)).unwrap();
    assert_eq!(unified.weight().unwrap(), 20);
    let weights = [2, 256, 512, 1024, 262_144].map(|shares| unified.weight_of(shares));
    assert_eq!(weights, [1, 10, 20, 39, 10_000]);
}

#[test]
fn a_memory_limit_is_read_and_written_in_both_versions() {
    let half = MemoryLimit { memory: Some(1 << 29), swap: Some(1 << 30) };
    let none = MemoryLimit { memory: None, swap: None };
    let (_folder, group) = v1(&[
        ("memory.limit_in_bytes", "9223372036854771712\n"),
        ("memory.memsw.limit_in_bytes", "9223372036854771712\n"),
        ("memory.max_usage_in_bytes", "4096\n"),
    ]);
    assert_eq!(group.memory_limit().unwrap(), none);
    assert_eq!(group.memory_peak().unwrap(), 4096);
    group.set_memory_limit(half).unwrap();
    assert_eq!(group.memory_limit().unwrap(), half);
    let unlimited =
        [("memory.max", "max\n"), ("memory.swap.max", "max\n"), ("memory.peak", "8192\n")];
    let (folder, group) = v2(&unlimited);
    assert_eq!(group.memory_limit().unwrap(), none);
    assert_eq!(group.memory_peak().unwrap(), 8192);
    group.set_memory_limit(half).unwrap();
    assert_eq!(group.memory_limit().unwrap(), half);
    group.set_memory_limit(none).unwrap();
    assert_eq!(fs::read_to_string(folder.path().join("memory.max")).unwrap(), "max");
}

#[test]
fn where_swap_is_not_counted_memory_is_limited_all_the_same() {
    let half = MemoryLimit { memory: Some(1 << 29), swap: None };
    let (_first, one) = v1(&[("memory.limit_in_bytes", "9223372036854771712\n")]);
    let (_second, two) = v2(&[("memory.max", "max\n")]);
    for group in [one, two] {
        group.set_memory_limit(half).unwrap();
        assert_eq!(group.memory_limit().unwrap(), half);
    }
}

#[test]
fn what_differs_by_rounding_alone_is_one_limit() {
    let quota = |quota, period| Quota { quota, period };
    assert!(quota(Some(50_000), 100_000).is_near(quota(Some(25_100), 50_000)));
    assert!(!quota(Some(50_000), 100_000).is_near(quota(Some(51_000), 100_000)));
    assert!(quota(None, 100_000).is_near(quota(None, 50_000)));
    assert!(!quota(None, 100_000).is_near(quota(Some(200_000), 100_000)));
}

#[test]
fn block_io_is_weighed_on_the_scale_of_the_file_that_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let proc = folder.path().join("7");
    fs::create_dir_all(folder.path().join("self")).unwrap();
    fs::create_dir_all(&proc).unwrap();
    fs::write(proc.join("cgroup"), "0::/\n").unwrap();
    fs::write(folder.path().join("self/mountinfo"), "").unwrap();
    assert_eq!(block_io::IoWeight::of(folder.path(), 7, folder.path()), None);
    fs::write(folder.path().join("io.bfq.weight"), "default 100\n8:0 200\n").unwrap();
    let weight = block_io::IoWeight::of(folder.path(), 7, folder.path()).unwrap();
    assert_eq!((weight.get().unwrap(), weight.like(512, 1024)), (100, 50));
    fs::write(folder.path().join("blkio.weight"), "500\n").unwrap();
    let weight = block_io::IoWeight::of(folder.path(), 7, folder.path()).unwrap();
    assert_eq!((weight.like(2048, 1024), weight.like(2, 1024)), (1000, 10));
    weight.set(250).unwrap();
    assert_eq!(weight.get().unwrap(), 250);
}
