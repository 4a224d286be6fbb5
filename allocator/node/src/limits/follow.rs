//! Follows the owner: tells the owner's changes apart from our own last write. Pure.
//!
//! A value in force is one of three: the original, one of our last write, or the owner's. What the
//! engine keeps decides first, because `docker update` changes it, and we know each of our own
//! requests. The kernel's files show changes past the engine. In a later life of the control group,
//! the engine has written them from what it keeps.

use paceline_cgroup::{Quota, WeightScale};
use paceline_runtime::HostCpu;

use super::record::{LastWrite, Observed, Original, Record, engines_quota, engines_weights};

/// The owner's limits after a change, and which of them the owner has changed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Followed {
    pub(super) original: Original,
    pub(super) cap: bool,
    pub(super) weight: bool,
}

/// The owner's limits now; `None` if they are as recorded.
pub(super) fn follow(record: &Record, now: &Observed) -> Option<Followed> {
    let last = record.last.as_ref()?;
    let was = &record.original;
    let mut original = was.clone();
    let restarted = last.group.is_some() && now.group.is_some() && last.group != now.group;
    let cap = cap(&mut original, last, now, restarted);
    let weight = weight(&mut original, last, now, restarted);
    io_weight(&mut original, last, now, restarted);
    (original != *was).then_some(Followed { original, cap, weight })
}

/// Follows a change of the cap; returns whether the owner made it.
fn cap(original: &mut Original, last: &LastWrite, now: &Observed, restarted: bool) -> bool {
    let was = original.host_config;
    let original_quota = original.cgroup;
    let is_original = |quota: Quota| original_quota.is_some_and(|was| was.is_near(quota));
    let ours = |quota: Quota| {
        let written = last.quota.iter().chain(&last.doubted_quota).copied();
        let mut values = written.chain(asked(last).map(engines_quota));
        values.any(|one| one.is_near(quota))
    };
    // In version 1 of control groups, a request for another period leaves our quota where it is.
    let ours_in_another_period = |quota: Quota| {
        let same = |one: &Quota| one.quota == quota.quota && one.period != quota.period;
        let is_owners = original_quota.is_some_and(|was| was.quota == quota.quota);
        !restarted && !is_owners && last.quota.iter().any(same) && !last.quota.contains(&quota)
    };
    let kept = engines_quota(now.host);
    if !hosts(last, was).any(|one| one.caps() == now.host.caps()) {
        // The owner's request came last, unless the kernel has yet another value: then that one did. A
        // value of ours there was written past the request; the original one can only be the owner's.
        let owners = owners_caps(last, was, now.host);
        let past = now.quota.filter(|quota| {
            let ours = if restarted {
                owners != now.host.caps() && quota.is_near(kept)
            } else {
                ours_in_another_period(*quota) || (!is_original(*quota) && ours(*quota))
            };
            !ours
        });
        let mut asked = engines_quota(owners);
        // With another period, the engine applies the quota that it keeps, if it keeps one.
        let period_alone =
            asked.quota.is_none() && HostCpu { cpu_period: was.cpu_period, ..owners } == was.caps();
        if let Some(original) = original_quota.filter(|_| period_alone && !restarted) {
            asked.quota = original.quota;
        }
        original.host_config = HostCpu { cpu_shares: was.cpu_shares, ..owners };
        original.cgroup = original.cgroup.and(Some(past.unwrap_or(asked)));
        return true;
    }
    let Some(quota) = now.quota else { return false };
    // Version 2 has both in one file, so that its writer has chosen both.
    let period_alone = now.scale == WeightScale::Shares && ours_in_another_period(quota);
    if let Some(original_quota) = original_quota.filter(|_| period_alone) {
        original.cgroup = Some(Quota { period: quota.period, ..original_quota });
        return true;
    }
    let by_owner = if restarted {
        !quota.is_near(kept)
    } else {
        !last.quota.is_empty() && !is_original(quota) && !ours(quota)
    };
    if by_owner {
        original.cgroup = Some(quota);
    } else if restarted && original.cgroup.is_some() {
        // A value that was written past the engine ended with the group.
        original.cgroup = Some(engines_quota(was));
    }
    by_owner
}

/// Follows a change of the CPU weight; returns whether the owner made it.
fn weight(original: &mut Original, last: &LastWrite, now: &Observed, restarted: bool) -> bool {
    let was = original.host_config;
    let original_weight = original.weight;
    let is_original = |weight: u64| original_weight == Some(weight);
    let ours = |weight: u64| last.weight.contains(&weight) || last.doubted_weight.contains(&weight);
    let engines = |weight: u64| engines_weights(now.host, now.scale).contains(&weight);
    let converted = |host: HostCpu| {
        let settled = match (last.host.as_slice(), last.weight.as_slice()) {
            ([host], [weight]) => Some((*host, *weight)),
            _ => None,
        };
        let [seen, owners] = [(now.host, now.weight), (was, original_weight)]
            .map(|(host, weight)| weight.map(|weight| (host, weight)));
        converted(host, now.scale, [seen, owners, settled].into_iter().flatten())
    };
    if !hosts(last, was).any(|one| shares(one) == shares(now.host)) {
        // What the engine writes for the owner's request may equal a value of ours.
        let is_owners =
            |weight| restarted || engines(weight) || is_original(weight) || !ours(weight);
        let found = now.weight.filter(|weight| is_owners(*weight));
        let [_, likely] = engines_weights(now.host, now.scale);
        original.host_config.cpu_shares = now.host.cpu_shares;
        // Of a container that does not run, not even the scale is known.
        let applied = || now.weight.and_then(|_| converted(now.host).or(Some(likely)));
        original.weight = original.weight.and(found.or_else(applied));
        return true;
    }
    let Some(weight) = now.weight else { return false };
    let keeps_owners = was.cpu_shares == now.host.cpu_shares;
    if restarted {
        // At a start, the engine has applied what it keeps. Any other weight was written later.
        let is_owners = keeps_owners || !(engines(weight) || ours(weight));
        let applied = if is_owners { Some(weight) } else { converted(was) };
        original.weight = original.weight.and(applied);
        return false;
    }
    // With each request, even an owner's, systemd applies all that it keeps: here, a weight of ours.
    let keeps_ours = !keeps_owners && asked(last).any(|one| one.cpu_shares == now.host.cpu_shares);
    let is_known = is_original(weight) || ours(weight) || (keeps_ours && engines(weight));
    let by_owner = !last.weight.is_empty() && !is_known;
    if by_owner {
        original.weight = Some(weight);
    }
    by_owner
}

/// The kernel's weight that the engine writes for what it keeps in `host`. `shown` are weights that the
/// engine keeps, with the kernel's: they show by which rule it converts. `None` if they do not.
fn converted(
    host: HostCpu,
    scale: WeightScale,
    mut shown: impl Iterator<Item = (HostCpu, u64)>,
) -> Option<u64> {
    let [first, later] = engines_weights(host, scale);
    if first == later {
        return Some(first);
    }
    shown.find_map(|(host, weight)| {
        match engines_weights(host, scale).map(|by_rule| by_rule == weight) {
            [true, false] => Some(first),
            [false, true] => Some(later),
            [true, true] | [false, false] => None,
        }
    })
}

fn io_weight(original: &mut Original, last: &LastWrite, now: &Observed, restarted: bool) {
    let ours = |weight| last.io_weight.contains(&weight) || original.io_weight == Some(weight);
    if restarted {
        original.io_weight = original.io_weight.and(now.io_weight);
    } else if let Some(weight) = now.io_weight
        && !last.io_weight.is_empty()
        && !ours(weight)
    {
        original.io_weight = Some(weight);
    }
}

/// What the engine may keep without a change by the owner.
fn hosts(last: &LastWrite, was: HostCpu) -> impl Iterator<Item = HostCpu> {
    asked(last).chain([was])
}

/// What the engine may keep because of us: nothing if it was never asked.
fn asked(last: &LastWrite) -> impl Iterator<Item = HostCpu> {
    last.host.iter().copied().filter(|_| last.engine)
}

/// The owner's part of the caps that the engine keeps. A request may change one of them alone: then the
/// others may still be ours.
fn owners_caps(last: &LastWrite, was: HostCpu, now: HostCpu) -> HostCpu {
    let part = |of: fn(HostCpu) -> i64| {
        let is_ours = asked(last).any(|one| of(one) == of(now));
        if is_ours { of(was) } else { of(now) }
    };
    HostCpu {
        nano_cpus: part(|host| host.nano_cpus),
        cpu_quota: part(|host| host.cpu_quota),
        cpu_period: part(|host| host.cpu_period),
        cpu_shares: 0,
    }
}

/// The engine's weight: 0 is the default.
fn shares(host: HostCpu) -> i64 {
    if host.cpu_shares > 0 { host.cpu_shares } else { 1024 }
}

#[cfg(test)]
mod tests;
