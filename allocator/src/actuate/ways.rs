//! Which request sets a CPU limit on a given container. Pure.
//!
//! Docker's two ways to write a CPU limit exclude each other for the whole life of a container: one
//! that was made or ever updated with `NanoCpus` refuses a quota, one with a quota or period refuses
//! `NanoCpus`. Neither field can be cleared: 0 means "leave it".

use paceline_policy::Share;
use paceline_policy::limiter::LEAST_CPUS;

use super::way::Way;
use crate::observe::cgroup::Quota;
use crate::observe::container::{DEFAULT_PERIOD, HostCpu};

/// The weight that the engine gives a container that asks for none.
const DEFAULT_SHARES: i64 = 1024;
/// The smallest quota that the engine accepts, in microseconds.
const LEAST_QUOTA: i64 = 1000;

/// The ways to give a container `share` of a node with `cpus` CPUs, best first.
pub(super) fn to_limit(host: HostCpu, share: Share, cpus: f64) -> Vec<Way> {
    let cores = (share.get() * cpus).max(LEAST_CPUS);
    let period = if host.cpu_period > 0 { host.cpu_period } else { DEFAULT_PERIOD };
    let quota = whole(cores * float(period)).max(LEAST_QUOTA);
    let file = Way::File(Quota {
        quota: (!share.is_all()).then(|| quota.unsigned_abs()),
        period: period.unsigned_abs(),
    });
    if by_quota(host) {
        vec![Way::CpuQuota(if share.is_all() { -1 } else { quota }), file]
    } else {
        vec![Way::NanoCpus(whole(cores * 1e9).min(whole(cpus * 1e9))), file]
    }
}

/// The way to give it to a control group that has the quota `now`, past the engine.
pub(super) fn to_write(now: Quota, share: Share, cpus: f64) -> Way {
    let period = i64::try_from(now.period).unwrap_or(DEFAULT_PERIOD);
    let quota = whole((share.get() * cpus).max(LEAST_CPUS) * float(period)).max(LEAST_QUOTA);
    let quota = (!share.is_all()).then(|| quota.unsigned_abs());
    Way::File(Quota { quota, period: period.unsigned_abs() })
}

/// The request that would give a container `share`, in words.
pub fn first_way(host: HostCpu, share: Share, cpus: f64) -> String {
    to_limit(host, share, cpus).first().map(ToString::to_string).unwrap_or_default()
}

/// The way to give a container a CPU weight; the engine takes 0 for "leave it".
pub(super) fn to_weigh(weight: i64) -> Way {
    Way::CpuShares(if weight > 0 { weight } else { DEFAULT_SHARES })
}

/// The engine's ways to put back the cap that `host` says, best first. The control group's file comes after
/// them: see [`super::Actuator::restore`].
pub(super) fn to_restore(host: HostCpu, cpus: f64) -> Vec<Way> {
    if host.nano_cpus > 0 {
        vec![Way::NanoCpus(host.nano_cpus)]
    } else if by_quota(host) {
        vec![Way::CpuQuota(if host.cpu_quota > 0 { host.cpu_quota } else { -1 })]
    } else {
        // There is no way back to "not set". All CPUs is the same and survives a restart; under a
        // parent group with a quota the kernel refuses it, and −1 is what is left. Later NanoCpus
        // limits of that container would be lost at a restart, so it comes second.
        vec![Way::NanoCpus(whole(cpus * 1e9)), Way::CpuQuota(-1)]
    }
}

/// Whether what the engine keeps now is as good as `original`: equal, or without a limit as it was.
pub(super) fn equivalent(original: HostCpu, now: HostCpu, cpus: f64) -> bool {
    let unlimited = |host: HostCpu| {
        (host.nano_cpus == 0 || host.nano_cpus >= whole(cpus * 1e9) || host.cpu_quota == -1)
            && host.cpu_quota <= 0
    };
    let weight = |host: HostCpu| if host.cpu_shares > 0 { host.cpu_shares } else { DEFAULT_SHARES };
    weight(original) == weight(now)
        && (original.caps() == now.caps() || (unlimited(original) && unlimited(now)))
}

fn by_quota(host: HostCpu) -> bool {
    host.nano_cpus == 0 && (host.cpu_quota != 0 || host.cpu_period != 0)
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "exact below 2^53 µs")]
fn float(us: i64) -> f64 {
    us as f64
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "saturates, and is meant to"
)]
fn whole(x: f64) -> i64 {
    x.round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNSET: HostCpu = HostCpu { nano_cpus: 0, cpu_quota: 0, cpu_period: 0, cpu_shares: 0 };

    #[test]
    fn a_container_without_limits_is_limited_by_nano_cpus() {
        let ways = to_limit(UNSET, Share::nearest(0.25), 2.0);
        let file = Quota { quota: Some(50_000), period: 100_000 };
        assert_eq!(ways, [Way::NanoCpus(500_000_000), Way::File(file)]);
    }

    #[test]
    fn a_control_group_keeps_its_period() {
        let now = Quota { quota: Some(45_000), period: 50_000 };
        let half = Quota { quota: Some(50_000), period: 50_000 };
        assert_eq!(to_write(now, Share::nearest(0.5), 2.0), Way::File(half));
        let none = Quota { quota: None, period: 50_000 };
        assert_eq!(to_write(now, Share::ALL, 2.0), Way::File(none));
        let least = Quota { quota: Some(1000), period: 50_000 };
        assert_eq!(to_write(now, Share::nearest(1e-9), 2.0), Way::File(least));
    }

    #[test]
    fn what_the_kernel_will_have_is_known_beforehand() {
        let quarter = Quota { quota: Some(50_000), period: 100_000 };
        assert_eq!(Way::NanoCpus(500_000_000).quota(UNSET), Some(quarter));
        let host = HostCpu { cpu_quota: 40_000, cpu_period: 50_000, ..UNSET };
        let none = Quota { quota: None, period: 50_000 };
        assert_eq!(Way::CpuQuota(-1).quota(host), Some(none));
        assert_eq!(Way::CpuShares(2).quota(host), None);
    }

    #[test]
    fn a_container_with_a_quota_keeps_its_period() {
        let host = HostCpu { cpu_quota: 40_000, cpu_period: 50_000, ..UNSET };
        assert_eq!(to_limit(host, Share::nearest(0.5), 2.0)[0], Way::CpuQuota(50_000));
        assert_eq!(to_limit(host, Share::ALL, 2.0)[0], Way::CpuQuota(-1));
        assert_eq!(to_restore(host, 2.0), [Way::CpuQuota(40_000)]);
    }

    #[test]
    fn no_limit_is_all_cpus_where_nano_cpus_rule() {
        assert_eq!(to_limit(UNSET, Share::ALL, 2.0)[0], Way::NanoCpus(2_000_000_000));
        assert_eq!(to_restore(UNSET, 2.0), [Way::NanoCpus(2_000_000_000), Way::CpuQuota(-1)]);
    }

    #[test]
    fn a_limit_never_falls_below_what_the_engine_accepts() {
        assert_eq!(to_limit(UNSET, Share::nearest(1e-6), 2.0)[0], Way::NanoCpus(10_000_000));
        let host = HostCpu { cpu_period: 1000, ..UNSET };
        assert_eq!(to_limit(host, Share::nearest(1e-6), 2.0)[0], Way::CpuQuota(1000));
    }

    #[test]
    fn all_cpus_counts_as_what_an_unset_limit_was() {
        let all = HostCpu { nano_cpus: 2_000_000_000, ..UNSET };
        let half = HostCpu { nano_cpus: 500_000_000, ..UNSET };
        let lifted = HostCpu { cpu_quota: -1, ..half };
        assert!(equivalent(UNSET, all, 2.0) && equivalent(UNSET, lifted, 2.0));
        assert!(!equivalent(UNSET, half, 2.0) && !equivalent(half, all, 2.0));
        assert!(equivalent(half, half, 2.0));
    }

    #[test]
    fn the_default_weight_counts_as_what_an_unset_weight_was() {
        let default = HostCpu { cpu_shares: 1024, ..UNSET };
        let light = HostCpu { cpu_shares: 2, ..UNSET };
        assert!(equivalent(UNSET, default, 2.0) && !equivalent(UNSET, light, 2.0));
        assert_eq!(to_weigh(0), Way::CpuShares(1024));
    }
}
