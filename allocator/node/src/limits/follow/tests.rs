use paceline_cgroup::Instance;
use paceline_runtime::Container;

use super::*;
use crate::limits::limit_write::LimitWrite;

const UNSET: HostCpu = HostCpu { nano_cpus: 0, cpu_quota: 0, cpu_period: 0, cpu_shares: 0 };

fn nano(nano_cpus: i64) -> HostCpu {
    HostCpu { nano_cpus, ..UNSET }
}

fn quota(us: u64) -> Quota {
    Quota { quota: Some(us), period: 100_000 }
}

const FREE: Quota = Quota { quota: None, period: 100_000 };

/// The life of a control group.
fn group(inode: u64) -> Instance {
    serde_json::from_value(serde_json::json!({"path": "/a", "inode": inode, "boot": "b"})).unwrap()
}

fn observed(host: HostCpu, quota: Quota) -> Observed {
    let shares = u64::try_from(host.cpu_shares).unwrap();
    let weight = Some(if shares > 0 { shares } else { 1024 });
    Observed {
        host,
        quota: Some(quota),
        weight,
        io_weight: None,
        group: Some(group(1)),
        scale: WeightScale::Shares,
    }
}

/// A container that had these limits when it was written to, by writes that were all read back but
/// the last one, which was `settled` or not.
fn written(before: &Observed, writes: &[LimitWrite], settled: bool) -> Record {
    let container = serde_json::json!({"Id": "a", "Name": "a", "State": {}});
    let container: Container = paceline_runtime::testing::described(container);
    let original = Original::new(&container, before, 0.0);
    let (mut now, mut last) = (before.clone(), None);
    for (at, write) in writes.iter().enumerate() {
        let mut next = LastWrite::before(&now, last.as_ref());
        next.add(*write, &now);
        let mut after = Observed { host: write.after(now.host), ..now.clone() };
        match *write {
            LimitWrite::WeightFile(weight) => after.weight = Some(weight),
            LimitWrite::CpuShares(weight) => after.weight = Some(weight.unsigned_abs()),
            LimitWrite::NanoCpus(_) | LimitWrite::CpuQuota(_) | LimitWrite::File(_) => {
                after.quota = write.quota(now.host);
            }
        }
        if settled || at + 1 < writes.len() {
            next.settle(*write, &now, &after);
        }
        (now, last) = (after, Some(next));
    }
    Record { original, last }
}

#[test]
fn own_write_is_no_change_of_the_owner_done_or_not() {
    let before = observed(UNSET, FREE);
    let file = written(&before, &[LimitWrite::File(quota(25_000))], false);
    for quota in [FREE, quota(25_000)] {
        assert_eq!(follow(&file, &observed(UNSET, quota)), None);
    }
    let engine = written(&before, &[LimitWrite::NanoCpus(250_000_000)], false);
    for (host, quota) in [
        (UNSET, FREE),
        (nano(250_000_000), quota(25_000)),
        // The engine has written the kernel's value, and not yet its own.
        (UNSET, quota(25_000)),
        (nano(250_000_000), FREE),
    ] {
        assert_eq!(follow(&engine, &observed(host, quota)), None, "{host:?} {quota}");
    }
}

#[test]
fn later_request_of_the_owner_is_followed() {
    for settled in [true, false] {
        for write in [LimitWrite::File(quota(25_000)), LimitWrite::NanoCpus(250_000_000)] {
            let record = written(&observed(UNSET, FREE), &[write], settled);
            let now = observed(nano(1_500_000_000), quota(150_000));
            let followed = follow(&record, &now).unwrap();
            assert!(followed.cap && !followed.weight);
            assert_eq!(followed.original.host_config, nano(1_500_000_000), "{write}");
            assert_eq!(followed.original.cgroup, Some(quota(150_000)), "{write}");
            let again = Record { original: followed.original, ..record };
            assert_eq!(follow(&again, &now), None);
        }
    }
}

#[test]
fn own_value_over_the_owners_request_does_not_hide_it() {
    // The owner's request came just before our write into the file.
    let record = written(&observed(UNSET, FREE), &[LimitWrite::File(quota(25_000))], true);
    let followed = follow(&record, &observed(nano(1_500_000_000), quota(25_000))).unwrap();
    assert_eq!(followed.original.cgroup, Some(quota(150_000)));
}

#[test]
fn request_for_another_period_leaves_no_quota_of_ours() {
    // In version 1 of control groups, period and quota are two files.
    let halved = |us| Quota { quota: us, period: 50_000 };
    let request = |host: HostCpu| HostCpu { cpu_period: 50_000, ..host };
    let capped = HostCpu { cpu_quota: 70_000, ..UNSET };
    for settled in [true, false] {
        for (host, before) in [(UNSET, FREE), (capped, quota(70_000))] {
            let record =
                written(&observed(host, before), &[LimitWrite::File(quota(25_000))], settled);
            let wanted = Some(halved(before.quota));
            // By the engine, or past it.
            for now in [request(host), host] {
                let now = observed(now, halved(Some(25_000)));
                let followed = follow(&record, &now).unwrap();
                assert_eq!(followed.original.host_config, now.host);
                assert_eq!(followed.original.cgroup, wanted, "{host:?}");
            }
            let written_after = observed(request(host), halved(Some(9_000)));
            let followed = follow(&record, &written_after).unwrap();
            assert_eq!(followed.original.cgroup, Some(halved(Some(9_000))));
        }
        let record =
            written(&observed(capped, quota(70_000)), &[LimitWrite::CpuQuota(25_000)], settled);
        let kept = request(HostCpu { cpu_quota: 25_000, ..UNSET });
        let now = observed(kept, halved(Some(25_000)));
        for now in [now.clone(), Observed { group: Some(group(2)), ..now }] {
            let followed = follow(&record, &now).unwrap();
            assert_eq!(followed.original.host_config, request(capped));
            assert_eq!(followed.original.cgroup, Some(halved(Some(70_000))));
        }
    }
}

#[test]
fn own_value_in_the_period_of_the_original_is_not_the_owners() {
    // Written past the engine, and then by a request of ours that has the same quota in another period.
    let original = Quota { quota: Some(100_000), period: 50_000 };
    let ours = LimitWrite::NanoCpus(1_000_000_000);
    let record = written(&observed(UNSET, original), &[ours], false);
    for now in [quota(100_000), original] {
        assert_eq!(follow(&record, &observed(nano(1_000_000_000), now)), None, "{now:?}");
    }
}

#[test]
fn writer_of_version_2_chooses_quota_and_period() {
    let record = written(&observed(UNSET, FREE), &[LimitWrite::File(quota(100_000))], true);
    let owners = Quota { quota: Some(100_000), period: 200_000 };
    let now = Observed { scale: WeightScale::Weight, ..observed(UNSET, owners) };
    let followed = follow(&record, &now).unwrap();
    assert_eq!(followed.original.cgroup, Some(owners));
}

#[test]
fn settled_write_leaves_the_earlier_values_to_the_owner() {
    let writes = [LimitWrite::NanoCpus(500_000_000), LimitWrite::NanoCpus(250_000_000)];
    let record = written(&observed(UNSET, FREE), &writes, true);
    let followed = follow(&record, &observed(nano(500_000_000), quota(50_000))).unwrap();
    assert_eq!(followed.original.host_config, nano(500_000_000));
    let files = [LimitWrite::File(quota(50_000)), LimitWrite::File(quota(25_000))];
    let record = written(&observed(UNSET, FREE), &files, true);
    let followed = follow(&record, &observed(UNSET, quota(50_000))).unwrap();
    assert_eq!(followed.original.cgroup, Some(quota(50_000)));
}

#[test]
fn change_past_the_engine_is_followed_until_the_group_ends() {
    let record = written(&observed(UNSET, FREE), &[LimitWrite::File(quota(25_000))], true);
    let followed = follow(&record, &observed(UNSET, quota(70_000))).unwrap();
    assert_eq!((followed.original.cgroup, followed.cap), (Some(quota(70_000)), true));
    let record = Record { original: followed.original, ..record };
    let restarted = Observed { group: Some(group(2)), ..observed(UNSET, FREE) };
    let followed = follow(&record, &restarted).unwrap();
    assert_eq!((followed.original.cgroup, followed.cap), (Some(FREE), false));
}

#[test]
fn later_life_of_the_group_begins_with_what_the_engine_keeps() {
    let record = written(&observed(UNSET, FREE), &[LimitWrite::NanoCpus(250_000_000)], true);
    // Our own limit, which the engine has kept.
    let restarted = |host, quota| Observed { group: Some(group(2)), ..observed(host, quota) };
    assert_eq!(follow(&record, &restarted(nano(250_000_000), quota(25_000))), None);
    let followed = follow(&record, &restarted(nano(500_000_000), quota(50_000))).unwrap();
    assert_eq!(followed.original.cgroup, Some(quota(50_000)));
    // Written by the owner into the new group.
    let followed = follow(&record, &restarted(nano(250_000_000), quota(70_000))).unwrap();
    assert_eq!(followed.original.cgroup, Some(quota(70_000)));
    assert_eq!(followed.original.host_config, UNSET);
}

#[test]
fn weights_are_followed_like_caps() {
    let before = observed(UNSET, FREE);
    let heavy = |cpu_shares| observed(HostCpu { cpu_shares, ..UNSET }, FREE);
    for settled in [true, false] {
        let record = written(&before, &[LimitWrite::CpuShares(512)], settled);
        assert_eq!(follow(&record, &heavy(512)), None);
        let followed = follow(&record, &heavy(300)).unwrap();
        assert!(followed.weight && !followed.cap);
        assert_eq!(followed.original.host_config.cpu_shares, 300);
        assert_eq!(followed.original.weight, Some(300));
    }
    let record = written(&before, &[LimitWrite::WeightFile(512)], true);
    let now = Observed { weight: Some(700), ..before.clone() };
    assert_eq!(follow(&record, &now).unwrap().original.weight, Some(700));
    // The engine converts weights in version 2: its result is unknown until it was read back.
    let unified = Observed { scale: WeightScale::Weight, weight: Some(39), ..before };
    let record = written(&unified, &[LimitWrite::CpuShares(512)], false);
    let now = Observed { host: HostCpu { cpu_shares: 512, ..UNSET }, weight: Some(20), ..unified };
    assert_eq!(follow(&record, &now), None);
}

/// What is seen under version 2 of control groups.
fn unified(cpu_shares: i64, weight: u64) -> Observed {
    let now = observed(HostCpu { cpu_shares, ..UNSET }, FREE);
    Observed { scale: WeightScale::Weight, weight: Some(weight), ..now }
}

#[test]
fn weight_that_systemd_applies_again_is_no_change_of_the_owner() {
    // The engine cannot return to "not set": the restored weight is kept by a file.
    let before = unified(0, 100);
    let restored = written(&before, &[LimitWrite::CpuShares(1024)], true);
    for weight in [39, 100] {
        assert_eq!(follow(&restored, &unified(1024, weight)), None, "{weight}");
    }
    // A request of ours for a cap applies it again.
    let record = written(&unified(1641, 777), &[LimitWrite::CpuQuota(25_000)], false);
    for weight in [63, 777] {
        let now = unified(1641, weight);
        let host = HostCpu { cpu_quota: 25_000, ..now.host };
        let now = Observed { host, quota: Some(quota(25_000)), ..now };
        assert_eq!(follow(&record, &now), None, "{weight}");
    }
}

#[test]
fn weight_that_the_engine_writes_for_the_owners_request_is_the_owners() {
    // It was seen before the engine's new description of the container.
    let record = written(&unified(1024, 63), &[LimitWrite::WeightFile(13)], false);
    let weight = |now: Observed| follow(&record, &now).unwrap().original.weight;
    assert_eq!(weight(unified(1641, 63)), Some(63));
    assert_eq!(weight(unified(1641, 146)), Some(146));
    // A later write of ours hides it. What the engine wrote before shows how it converts.
    assert_eq!(weight(unified(1641, 13)), Some(146));
    let record = written(&unified(1024, 39), &[LimitWrite::WeightFile(13)], true);
    let followed = follow(&record, &unified(1641, 13)).unwrap();
    assert_eq!(followed.original.weight, Some(63));
}

#[test]
fn weight_of_the_owner_is_known_after_a_restart_with_ours() {
    let later = |now: Observed| Observed { group: Some(group(2)), ..now };
    for (unset, was, now) in [(0, 100, 20), (300, 12, 20), (300, 39, 59)] {
        let record = written(&unified(unset, was), &[LimitWrite::CpuShares(512)], true);
        assert_eq!(follow(&record, &later(unified(512, now))), None, "{unset}");
    }
}

#[test]
fn only_the_doubted_value_stays_ours_after_a_request_that_failed_late() {
    let before = observed(UNSET, FREE);
    let Record { original, .. } = written(&before, &[], true);
    let mut last = LastWrite::before(&before, None);
    last.add(LimitWrite::NanoCpus(250_000_000), &before);
    let mut now = observed(UNSET, quota(25_000));
    for us in [50_000, 30_000] {
        let (write, after) = (LimitWrite::File(quota(us)), observed(UNSET, quota(us)));
        last = LastWrite::before(&now, Some(&last));
        last.add(write, &now);
        last.settle(write, &now, &after);
        now = after;
    }
    let record = Record { original, last: Some(last) };
    // Systemd may apply the doubted one again.
    assert_eq!(follow(&record, &observed(UNSET, quota(25_000))), None);
    let followed = follow(&record, &observed(UNSET, quota(50_000))).unwrap();
    assert_eq!(followed.original.cgroup, Some(quota(50_000)));
}

#[test]
fn record_without_a_last_write_is_taken_as_it_is() {
    let record = written(&observed(UNSET, FREE), &[], true);
    assert_eq!(follow(&record, &observed(nano(1), quota(70_000))), None);
}

#[test]
fn kernels_quota_follows_from_each_request() {
    assert_eq!(engines_quota(UNSET), FREE);
    assert_eq!(engines_quota(nano(1_500_000_000)), quota(150_000));
    let own = HostCpu { cpu_quota: 45_000, cpu_period: 50_000, ..UNSET };
    assert_eq!(engines_quota(own), Quota { quota: Some(45_000), period: 50_000 });
    assert_eq!(engines_quota(HostCpu { cpu_quota: -1, ..own }).quota, None);
}
