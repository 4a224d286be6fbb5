use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::settings::SettingError;

/// What a share means to the kernel.
///
/// The papers describe soft limits but use `--cpus`, which is hard (X2). So this can be set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(
        description = "What a share means to the kernel: a hard cap, a weight, or a hard cap with loans of unused CPU.",
        extend("enum" = ["quota", "shares", "quota+leftover"])
    )
)]
pub enum Enforcement {
    /// A hard cap: CPU that the job leaves unused stays idle.
    Quota,
    /// A weight: it applies only while jobs compete, and no job is capped.
    Shares,
    /// A hard cap, plus loans of what other jobs leave unused.
    #[default]
    QuotaLeftover,
}

impl FromStr for Enforcement {
    type Err = SettingError;

    fn from_str(name: &str) -> Result<Self, SettingError> {
        match name {
            "quota" => Ok(Self::Quota),
            "shares" => Ok(Self::Shares),
            "quota+leftover" => Ok(Self::QuotaLeftover),
            _ => Err(SettingError::Enforcement(name.to_owned())),
        }
    }
}

impl fmt::Display for Enforcement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Quota => "quota",
            Self::Shares => "shares",
            Self::QuotaLeftover => "quota+leftover",
        })
    }
}

impl TryFrom<String> for Enforcement {
    type Error = SettingError;

    fn try_from(name: String) -> Result<Self, SettingError> {
        name.parse()
    }
}

impl From<Enforcement> for String {
    fn from(enforcement: Enforcement) -> Self {
        enforcement.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_reads_back_as_it_was_written() {
        for enforcement in [Enforcement::Quota, Enforcement::Shares, Enforcement::QuotaLeftover] {
            assert_eq!(enforcement.to_string().parse(), Ok(enforcement));
        }
        assert_eq!(
            "soft".parse::<Enforcement>().unwrap_err().to_string(),
            r#"invalid enforcement "soft": expected quota, shares or quota+leftover"#
        );
    }

    proptest! {
        #[test]
        fn parsed_name_is_written_back_unchanged(name in ".*|quota(\\+leftover)?|shares") {
            if let Ok(enforcement) = name.parse::<Enforcement>() {
                prop_assert_eq!(enforcement.to_string(), name);
            }
        }
    }
}
