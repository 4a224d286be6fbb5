use tempfile::TempDir;

use super::*;

/// A folder of control groups.
struct Root(TempDir);

impl Root {
    fn new(files: &[(&str, &str)]) -> Self {
        let root = Self(tempfile::tempdir().unwrap());
        for (path, text) in files {
            root.write(path, text);
        }
        root
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn groups(&self, groups: &str) -> Groups {
        Groups::find(self.0.path(), groups)
    }
}

#[test]
fn the_tightest_of_the_groups_above_counts() {
    let root = Root::new(&[("a/cpu.max", "150000 100000\n"), ("a/b/cpu.max", "max 100000\n")]);
    assert_eq!(root.groups("0::/a/b\n").quota(), Some(1.5));
    root.write("a/b/cpu.max", "50000 100000\n");
    assert_eq!(root.groups("0::/a/b\n").quota(), Some(0.5));
}

#[test]
fn a_container_sees_its_own_group_as_the_root() {
    let root = Root::new(&[
        ("cpu/cpu.cfs_quota_us", "25000\n"),
        ("cpu/cpu.cfs_period_us", "100000\n"),
        ("cpu/cpu.stat", "nr_periods 40\nnr_throttled 10\nthrottled_time 2500000000\n"),
    ]);
    let groups = root.groups("5:memory:/docker/f00\n4:cpu,cpuacct:/docker/f00\n0::/\n");
    assert_eq!(groups.quota(), Some(0.25));
    let stat = Stat { periods: 40, throttled_periods: 10, throttled_seconds: 2.5 };
    assert_eq!((groups.stat(), groups.pressure()), (Some(stat), None));
}

#[test]
fn without_a_quota_there_is_none() {
    let root = Root::new(&[
        ("cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
        ("cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
    ]);
    assert_eq!(root.groups("4:cpu,cpuacct:/\n").quota(), None);
    for text in ["nonsense", ""] {
        let groups = root.groups(text);
        assert_eq!((groups.quota(), groups.stat(), groups.pressure()), (None, None, None));
    }
}

/// `cpu.stat` of version 2.
fn stat(periods: u64, throttled: u64) -> String {
    format!(
        "usage_usec 900\nnr_periods {periods}\nnr_throttled {throttled}\nthrottled_usec 500000\n"
    )
}

#[test]
fn throttling_is_that_of_the_group_with_the_quota() {
    let root = Root::new(&[
        ("a/cpu.max", "50000 100000\n"),
        ("a/cpu.stat", &stat(20, 5)),
        ("a/b/cpu.max", "max 100000\n"),
        ("a/b/cpu.stat", &stat(0, 0)),
        ("a/b/cpu.pressure", "some avg10=12.50 avg60=3.00 avg300=1.00 total=9\nfull avg10=0.00\n"),
    ]);
    let groups = root.groups("0::/a/b\n");
    let expected = Stat { periods: 20, throttled_periods: 5, throttled_seconds: 0.5 };
    assert_eq!((groups.stat(), groups.pressure()), (Some(expected), Some(0.125)));
    root.write("a/cpu.max", "max 100000\n");
    assert_eq!(groups.stat().unwrap().periods, 0, "the nearest");
}

#[test]
fn files_are_read_once_a_second_and_the_ratio_is_of_the_time_between() {
    let root = Root::new(&[("a/cpu.max", "50000 100000\n"), ("a/cpu.stat", &stat(20, 5))]);
    let meter = CpuMeter::default();
    let read = |now: f64| meter.read_by(now, || root.groups("0::/a\n"));
    let first = read(10.0);
    assert_eq!(
        (first.quota, first.throttled_ratio, first.periods),
        (Some(0.5), Some(0.25), Some(20))
    );
    root.write("a/cpu.stat", &stat(30, 14));
    assert_eq!(read(10.9), first, "it is too early");
    let second = read(11.0);
    assert_eq!((second.throttled_ratio, second.throttled_periods), (Some(0.9), Some(14)));
    assert_eq!(read(12.0).throttled_ratio, None, "no period has passed");
    root.write("a/cpu.stat", &stat(4, 1));
    assert_eq!(read(13.0).throttled_ratio, Some(0.25), "another group counts from its beginning");
}
