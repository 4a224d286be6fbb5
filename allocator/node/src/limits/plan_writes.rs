//! Plans the writes that set a CPU limit on a given container. Pure.
//!
//! Docker's two fields for a CPU limit exclude each other for the whole life of a container. One that
//! was created or ever updated with `NanoCpus` refuses a quota; one with a quota or period refuses
//! `NanoCpus`. Neither field can be cleared: 0 means "unchanged".

use paceline_cgroup::{Quota, WeightScale};
use paceline_policy::Share;
use paceline_policy::limiter::MIN_CPUS;
use paceline_runtime::{DEFAULT_PERIOD, HostCpu};

use super::limit_write::LimitWrite;

/// The engine's default weight.
const DEFAULT_SHARES: i64 = 1024;
/// What engines with the older conversion to version 2 turn into the default weight. They turn their own
/// default into 39 of 100.
const SHARES_FOR_DEFAULT_BY_OLDER: i64 = 2598;
/// The smallest quota that the engine accepts, in microseconds.
const MIN_QUOTA: i64 = 1000;

/// The writes that limit a container to `share` of a node with `cpus` CPUs, best first.
pub(super) fn to_limit(host: HostCpu, share: Share, cpus: f64) -> Vec<LimitWrite> {
    let cores = (share.get() * cpus).max(MIN_CPUS);
    let period = if host.cpu_period > 0 { host.cpu_period } else { DEFAULT_PERIOD };
    let quota = whole(cores * float(period)).max(MIN_QUOTA);
    let file = LimitWrite::File(Quota {
        quota: (!share.is_all()).then(|| quota.unsigned_abs()),
        period: period.unsigned_abs(),
    });
    if by_quota(host) {
        vec![LimitWrite::CpuQuota(if share.is_all() { -1 } else { quota }), file]
    } else {
        vec![LimitWrite::NanoCpus(whole(cores * 1e9).min(whole(cpus * 1e9))), file]
    }
}

/// The direct write to a control group whose present quota is `now`.
pub(super) fn to_write(now: Quota, share: Share, cpus: f64) -> LimitWrite {
    let period = i64::try_from(now.period).unwrap_or(DEFAULT_PERIOD);
    let quota = whole((share.get() * cpus).max(MIN_CPUS) * float(period)).max(MIN_QUOTA);
    let quota = (!share.is_all()).then(|| quota.unsigned_abs());
    LimitWrite::File(Quota { quota, period: period.unsigned_abs() })
}

/// The first request that would limit a container to `share`, as text.
pub fn first_write(host: HostCpu, share: Share, cpus: f64) -> String {
    to_limit(host, share, cpus).first().map(ToString::to_string).unwrap_or_default()
}

/// The write of a CPU weight; 0 is the default weight, as the engine takes 0 for "unchanged".
pub(super) fn to_weigh(weight: i64) -> LimitWrite {
    LimitWrite::CpuShares(if weight > 0 { weight } else { DEFAULT_SHARES })
}

/// The write that lets the engine apply the default weight, if it has turned its own default into
/// `weight`. The engine cannot return to "not set", and would apply this weight at each start.
pub(super) fn to_default_weight(scale: WeightScale, weight: Option<u64>) -> Option<LimitWrite> {
    let [older, later] = scale.by_engines(DEFAULT_SHARES.unsigned_abs());
    (older != later && weight == Some(older))
        .then_some(LimitWrite::CpuShares(SHARES_FOR_DEFAULT_BY_OLDER))
}

/// The engine's requests that restore the cap in `host`, best first. The control group's file comes
/// after them: see [`super::Actuator::restore`].
pub(super) fn to_restore(host: HostCpu, cpus: f64) -> Vec<LimitWrite> {
    if host.nano_cpus > 0 {
        vec![LimitWrite::NanoCpus(host.nano_cpus)]
    } else if by_quota(host) {
        vec![LimitWrite::CpuQuota(if host.cpu_quota > 0 { host.cpu_quota } else { -1 })]
    } else {
        // The engine cannot return to "not set". All CPUs is equivalent and survives a restart. The
        // kernel refuses it under a parent group with a quota; then only −1 remains. After −1, later
        // NanoCpus limits of that container would be lost at a restart, so it comes second.
        vec![LimitWrite::NanoCpus(whole(cpus * 1e9)), LimitWrite::CpuQuota(-1)]
    }
}

/// Whether the engine's present values are equivalent to `original`: equal, or both unlimited.
pub(super) fn equivalent(original: HostCpu, now: HostCpu, cpus: f64) -> bool {
    let unlimited = |host: HostCpu| {
        (host.nano_cpus == 0 || host.nano_cpus >= whole(cpus * 1e9) || host.cpu_quota == -1)
            && host.cpu_quota <= 0
    };
    let weight = |host: HostCpu| if host.cpu_shares > 0 { host.cpu_shares } else { DEFAULT_SHARES };
    let is_default = original.cpu_shares <= 0 && now.cpu_shares == SHARES_FOR_DEFAULT_BY_OLDER;
    (weight(original) == weight(now) || is_default)
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
    fn container_without_limits_is_limited_by_nano_cpus() {
        let writes = to_limit(UNSET, Share::nearest(0.25), 2.0);
        let file = Quota { quota: Some(50_000), period: 100_000 };
        assert_eq!(writes, [LimitWrite::NanoCpus(500_000_000), LimitWrite::File(file)]);
    }

    #[test]
    fn control_group_keeps_its_period() {
        let now = Quota { quota: Some(45_000), period: 50_000 };
        let half = Quota { quota: Some(50_000), period: 50_000 };
        assert_eq!(to_write(now, Share::nearest(0.5), 2.0), LimitWrite::File(half));
        let none = Quota { quota: None, period: 50_000 };
        assert_eq!(to_write(now, Share::ALL, 2.0), LimitWrite::File(none));
        let least = Quota { quota: Some(1000), period: 50_000 };
        assert_eq!(to_write(now, Share::nearest(1e-9), 2.0), LimitWrite::File(least));
    }

    #[test]
    fn quota_after_a_write_is_predicted() {
        let quarter = Quota { quota: Some(50_000), period: 100_000 };
        assert_eq!(LimitWrite::NanoCpus(500_000_000).quota(UNSET), Some(quarter));
        let host = HostCpu { cpu_quota: 40_000, cpu_period: 50_000, ..UNSET };
        let none = Quota { quota: None, period: 50_000 };
        assert_eq!(LimitWrite::CpuQuota(-1).quota(host), Some(none));
        assert_eq!(LimitWrite::CpuShares(2).quota(host), None);
    }

    #[test]
    fn container_with_a_quota_keeps_its_period() {
        let host = HostCpu { cpu_quota: 40_000, cpu_period: 50_000, ..UNSET };
        assert_eq!(to_limit(host, Share::nearest(0.5), 2.0)[0], LimitWrite::CpuQuota(50_000));
        assert_eq!(to_limit(host, Share::ALL, 2.0)[0], LimitWrite::CpuQuota(-1));
        assert_eq!(to_restore(host, 2.0), [LimitWrite::CpuQuota(40_000)]);
    }

    #[test]
    fn no_limit_is_written_as_all_cpus() {
        assert_eq!(to_limit(UNSET, Share::ALL, 2.0)[0], LimitWrite::NanoCpus(2_000_000_000));
        assert_eq!(
            to_restore(UNSET, 2.0),
            [LimitWrite::NanoCpus(2_000_000_000), LimitWrite::CpuQuota(-1)]
        );
    }

    #[test]
    fn limit_is_never_below_the_engines_minimum() {
        assert_eq!(to_limit(UNSET, Share::nearest(1e-6), 2.0)[0], LimitWrite::NanoCpus(10_000_000));
        let host = HostCpu { cpu_period: 1000, ..UNSET };
        assert_eq!(to_limit(host, Share::nearest(1e-6), 2.0)[0], LimitWrite::CpuQuota(1000));
    }

    #[test]
    fn all_cpus_is_equivalent_to_an_unset_limit() {
        let all = HostCpu { nano_cpus: 2_000_000_000, ..UNSET };
        let half = HostCpu { nano_cpus: 500_000_000, ..UNSET };
        let lifted = HostCpu { cpu_quota: -1, ..half };
        assert!(equivalent(UNSET, all, 2.0) && equivalent(UNSET, lifted, 2.0));
        assert!(!equivalent(UNSET, half, 2.0) && !equivalent(half, all, 2.0));
        assert!(equivalent(half, half, 2.0));
    }

    #[test]
    fn default_weight_is_equivalent_to_an_unset_weight() {
        let default = HostCpu { cpu_shares: 1024, ..UNSET };
        let light = HostCpu { cpu_shares: 2, ..UNSET };
        assert!(equivalent(UNSET, default, 2.0) && !equivalent(UNSET, light, 2.0));
        assert_eq!(to_weigh(0), LimitWrite::CpuShares(1024));
    }
}
