//! The built-in scenarios, as TOML.

/// A built-in scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: &'static str,
    /// Its file's text.
    pub text: &'static str,
}

impl Listed {
    /// The built-in scenario of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        LIBRARY.iter().find(|listed| listed.name == name)
    }
}

/// All of them, in the order in which they are listed.
pub const LIBRARY: &[Listed] = &[
    listed("FC-3", include_str!("../../scenarios/fc-3.toml")),
    listed("FC-5", include_str!("../../scenarios/fc-5.toml")),
    listed("FC-10", include_str!("../../scenarios/fc-10.toml")),
    listed("FC-15", include_str!("../../scenarios/fc-15.toml")),
    listed("TR-5", include_str!("../../scenarios/tr-5.toml")),
    listed("TR-10", include_str!("../../scenarios/tr-10.toml")),
    listed("DQ-20", include_str!("../../scenarios/dq-20.toml")),
    listed("DQ-40", include_str!("../../scenarios/dq-40.toml")),
    listed("DQ-var", include_str!("../../scenarios/dq-var.toml")),
    listed("DQ-fix", include_str!("../../scenarios/dq-fix.toml")),
    listed("DQ-rnd", include_str!("../../scenarios/dq-rnd.toml")),
    listed("DQ-4x10", include_str!("../../scenarios/dq-4x10.toml")),
    listed("SP-fix", include_str!("../../scenarios/sp-fix.toml")),
    listed("SP-20v", include_str!("../../scenarios/sp-20v.toml")),
    listed("SP-20", include_str!("../../scenarios/sp-20.toml")),
    listed("SP-30", include_str!("../../scenarios/sp-30.toml")),
    listed("SP-50", include_str!("../../scenarios/sp-50.toml")),
    listed("SP-auth", include_str!("../../scenarios/sp-auth.toml")),
    listed("DL-min", include_str!("../../scenarios/dl-min.toml")),
    listed("DL-3", include_str!("../../scenarios/dl-3.toml")),
    listed("KO-10", include_str!("../../scenarios/ko-10.toml")),
    listed("FAIL-20", include_str!("../../scenarios/fail-20.toml")),
    listed("PA-50", include_str!("../../scenarios/pa-50.toml")),
    listed("PA-50b", include_str!("../../scenarios/pa-50b.toml")),
    listed("LONG", include_str!("../../scenarios/long.toml")),
    listed("THREADS", include_str!("../../scenarios/threads.toml")),
    listed("MIX-11", include_str!("../../scenarios/mix-11.toml")),
    listed("LIES", include_str!("../../scenarios/lies.toml")),
    listed("STRESS", include_str!("../../scenarios/stress.toml")),
];

/// The scenario of this name.
#[cfg(test)]
pub(crate) fn scenario(name: &str) -> super::Scenario {
    super::Scenario::parse(Listed::named(name).unwrap().text).unwrap()
}

const fn listed(name: &'static str, text: &'static str) -> Listed {
    Listed { name, text }
}
