use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

/// The most CPUs that a kernel can be built for. Their numbers are below this.
const MAX_CPU: u32 = 8192;

/// A set of CPUs, as the kernel and the container engine write one: `0-3,8`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(
        with = "String",
        description = "A set of CPUs, numbered from 0: numbers and ranges, such as `0-3,8`.",
        extend(
            "pattern" = "^ *[0-9]+ *(- *[0-9]+ *)?(, *[0-9]+ *(- *[0-9]+ *)?)*$",
            "examples" = ["0-3", "0-3,8"]
        )
    )
)]
pub struct Cpuset(BTreeSet<u32>);

/// A text that is not a set of CPUs.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid set of CPUs {0:?}: expected numbers below {MAX_CPU} and ranges, for example 0-3,8"
)]
pub struct CpusetError(String);

impl Cpuset {
    /// The CPUs' numbers.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().copied()
    }

    /// How many CPUs these are.
    pub fn count(&self) -> f64 {
        paceline_policy::unit::count(self.0.len())
    }

    /// The first CPU that is in both sets.
    pub fn overlap(&self, other: &Self) -> Option<u32> {
        self.0.intersection(&other.0).next().copied()
    }

    /// The CPU with the highest number.
    pub fn last(&self) -> Option<u32> {
        self.0.last().copied()
    }
}

impl FromStr for Cpuset {
    type Err = CpusetError;

    fn from_str(text: &str) -> Result<Self, CpusetError> {
        let number = |text: &str| text.trim().parse().ok().filter(|cpu: &u32| *cpu < MAX_CPU);
        let range = |part: &str| match part.split_once('-') {
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(first..=last)
            }
            None => number(part).map(|cpu| cpu..=cpu),
        };
        let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
        let cpus = ranges.ok_or_else(|| CpusetError(text.to_owned()))?;
        Ok(Self(cpus.into_iter().flatten().collect()))
    }
}

impl TryFrom<String> for Cpuset {
    type Error = CpusetError;

    fn try_from(text: String) -> Result<Self, CpusetError> {
        text.parse()
    }
}

impl fmt::Display for Cpuset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for cpu in self.iter() {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == cpu => *last = cpu,
                _ => ranges.push((cpu, cpu)),
            }
        }
        for (at, (first, last)) in ranges.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{first}")?;
            if first != last {
                write!(f, "-{last}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cpuset_is_read_as_the_kernel_writes_it() {
        for (text, cpus, again) in [
            ("0", &[0][..], "0"),
            ("0-2", &[0, 1, 2], "0-2"),
            ("3,0-1", &[0, 1, 3], "0-1,3"),
            ("1,1, 2", &[1, 2], "1-2"),
        ] {
            let set: Cpuset = text.parse().unwrap();
            assert_eq!(set.iter().collect::<Vec<_>>(), cpus);
            assert_eq!(set.to_string(), again);
        }
    }

    #[test]
    fn text_that_is_not_a_cpuset_is_refused() {
        for text in ["", "a", "1-", "-1", "2-1", "0-4294967295", "1,,2", "0-8192"] {
            let error = text.parse::<Cpuset>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("invalid set of CPUs {text:?}")), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in ".*") {
            drop(text.parse::<Cpuset>());
        }

        #[test]
        fn written_cpuset_is_read_back(cpus in proptest::collection::btree_set(0..MAX_CPU, 1..40)) {
            let set = Cpuset(cpus);
            prop_assert_eq!(set.to_string().parse(), Ok(set));
        }
    }
}
