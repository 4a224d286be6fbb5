//! Files of control groups, versions 1 and 2.

use std::fs;
use std::path::{Path, PathBuf};

/// The control groups that bound the CPU of a process: its own, and those above it.
#[derive(Debug, Default)]
pub(super) struct Groups(Vec<Group>);

/// The folder of one of them.
#[derive(Debug)]
struct Group {
    version: Version,
    folder: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// What a control group's `cpu.stat` counts since the group was made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Stat {
    /// Periods of the quota in which something ran.
    pub(super) periods: u64,
    /// Those of them in which the quota was used up.
    pub(super) throttled_periods: u64,
    /// How long threads waited for the next period, all together.
    pub(super) throttled_seconds: f64,
}

impl Groups {
    /// The groups under `root`, nearest first; `groups` is the text of `/proc/self/cgroup`.
    pub(super) fn find(root: &Path, groups: &str) -> Self {
        let lines = groups.lines().filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            Some((fields.next()?, fields.next()?))
        });
        let found = lines.flat_map(|(controllers, group)| {
            let (version, mount) = if controllers.is_empty() {
                (Version::Two, root.to_owned())
            } else if controllers.split(',').any(|one| one == "cpu") {
                (Version::One, first_mount(root, controllers))
            } else {
                return Vec::new();
            };
            // In a container the mount shows its own group as the root, whatever its path is outside.
            let inside = mount.join(group.trim_start_matches('/'));
            let above = inside.ancestors().take_while(|path| path.starts_with(&mount));
            above.map(|folder| Group { version, folder: folder.to_owned() }).collect()
        });
        Self(found.collect())
    }

    /// The smallest quota of all, in cores.
    pub(super) fn quota(&self) -> Option<f64> {
        self.0.iter().filter_map(Group::quota).reduce(f64::min)
    }

    /// The counts of the group with the smallest quota, or else of the nearest.
    pub(super) fn stat(&self) -> Option<Stat> {
        let quotas = self.0.iter().filter_map(|group| Some((group.quota()?, group)));
        let tightest = quotas.reduce(|one, other| if other.0 < one.0 { other } else { one });
        let stat = tightest.and_then(|(_, group)| group.stat());
        stat.or_else(|| self.0.iter().find_map(Group::stat))
    }

    /// The part of the last 10 s in which a thread of the nearest group waited for a CPU; only version 2
    /// knows it.
    pub(super) fn pressure(&self) -> Option<f64> {
        let groups = self.0.iter().filter(|group| group.version == Version::Two);
        let text = groups.map(|group| group.text("cpu.pressure")).find_map(|text| text)?;
        let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
        let percent = some.split(' ').find_map(|field| field.strip_prefix("avg10="))?;
        percent.parse::<f64>().ok().map(|percent| (percent / 100.0).clamp(0.0, 1.0))
    }
}

impl Group {
    fn text(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.folder.join(file)).ok()
    }

    fn quota(&self) -> Option<f64> {
        let (quota, period) = match self.version {
            Version::One => {
                let number = |file| self.text(file)?.trim().parse::<f64>().ok();
                (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
            }
            Version::Two => {
                let text = self.text("cpu.max")?;
                let (quota, period) = text.trim().split_once(' ')?;
                (quota.parse().ok()?, period.parse().ok()?)
            }
        };
        (quota > 0.0 && period > 0.0).then(|| quota / period)
    }

    fn stat(&self) -> Option<Stat> {
        let text = self.text("cpu.stat")?;
        let count = |name: &str| -> Option<u64> {
            let fields = text.lines().filter_map(|line| line.split_once(' '));
            fields.into_iter().find(|(field, _)| *field == name)?.1.trim().parse().ok()
        };
        let (waited, unit) = match self.version {
            Version::One => (count("throttled_time")?, 1e-9),
            Version::Two => (count("throttled_usec")?, 1e-6),
        };
        Some(Stat {
            periods: count("nr_periods")?,
            throttled_periods: count("nr_throttled")?,
            throttled_seconds: crate::signals::number(waited) * unit,
        })
    }
}

impl Stat {
    /// The part of the periods since `before` that was throttled; `None` without any.
    pub(super) fn ratio_since(self, before: Self) -> Option<f64> {
        let number = crate::signals::number;
        // A process that has moved to another group counts from that group's beginning.
        let before = if self.periods < before.periods { Self::default() } else { before };
        let periods = self.periods.saturating_sub(before.periods);
        let throttled = self.throttled_periods.saturating_sub(before.throttled_periods);
        (periods > 0).then(|| (number(throttled) / number(periods)).min(1.0))
    }
}

/// The mount of version 1's CPU controller: named after all its controllers or the CPU's alone.
fn first_mount(root: &Path, controllers: &str) -> PathBuf {
    let joined = root.join(controllers);
    if joined.is_dir() { joined } else { root.join("cpu") }
}
