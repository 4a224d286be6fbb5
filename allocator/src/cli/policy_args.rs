//! The choice of a policy, on the command line, in a file, or both.

use std::path::PathBuf;

use clap::Args;
use paceline_api::usage::BadUsage;
use paceline_policy::limiter::{Enforcement, LimiterOptions, LimiterSettings};
use paceline_policy::params::Param;
use paceline_policy::policies::{self, AnyPolicy, FlowCon, Paceline};
use paceline_policy::{Params, Variant};

use crate::config::Config;

/// A policy and its parameters.
#[derive(Clone, Debug, PartialEq, Args)]
pub(super) struct PolicyArgs {
    /// The policy; `paceline policies` lists them [default: paceline]
    #[arg(long, value_name = "NAME")]
    pub(super) policy: Option<String>,

    /// The version of the policy: with corrections (resolved), or exactly as in its paper
    /// (published) [default: resolved]
    #[arg(long)]
    pub(super) variant: Option<Variant>,

    /// A parameter of the policy. Repeat the option for several
    #[arg(long = "param", value_name = "NAME=NUMBER")]
    pub(super) params: Vec<Param>,

    /// How a share is enforced: quota (a hard cap), shares (a weight), or quota+leftover (a cap
    /// plus
    /// CPU that others leave unused) [default: the policy's own, see `paceline policies`]
    #[arg(long)]
    pub(super) enforcement: Option<Enforcement>,

    /// A TOML file; examples/deploy/paceline.toml shows all keys. The command line overrides
    /// it, and
    /// SIGHUP reloads it
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
}

/// The merged settings of the command line and the file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chosen {
    pub(super) policy: String,
    pub(super) variant: Variant,
    pub(super) params: Params,
    pub(super) limiter: LimiterSettings,
}

impl PolicyArgs {
    /// The file's settings; defaults without a file.
    pub(super) fn file(&self) -> Result<Config, BadUsage> {
        self.config.as_deref().map(Config::read).transpose().map(Option::unwrap_or_default)
    }

    /// The file's settings, overridden by the command line.
    pub(super) fn chosen(&self) -> Result<Chosen, BadUsage> {
        Ok(self.over(&self.file()?))
    }

    /// The same for a file that was read before.
    pub(super) fn over(&self, file: &Config) -> Chosen {
        let policy = self.policy.clone().or_else(|| file.policy.clone());
        let policy = policy.unwrap_or_else(|| Paceline::NAME.to_owned());
        let own = policies::Entry::named(&policy).map(|entry| entry.enforcement);
        let enforcement = self.enforcement.or(file.limiter.enforcement);
        let limiter = LimiterOptions { enforcement, ..file.limiter };
        let mut params = Params::default();
        for (name, value) in &file.params {
            params.set(name.clone(), *value);
        }
        for Param { name, value } in &self.params {
            params.set(name.clone(), *value);
        }
        Chosen {
            limiter: limiter.below(own.unwrap_or_default()),
            policy,
            variant: self.variant.or(file.variant).unwrap_or_default(),
            params,
        }
    }
}

impl Chosen {
    /// The policy, ready to run.
    pub(super) fn build(&self) -> Result<AnyPolicy, BadUsage> {
        policies::build(&self.policy, self.variant, &self.params)
            .map_err(|error| BadUsage(format!("{error}{}", self.hint())))
    }

    /// A hint for users whose parameters belong to flowcon, the default policy of version
    /// 0.1.0.
    fn hint(&self) -> String {
        let has = |policy: &str, name: &str| {
            let entry = policies::Entry::named(policy);
            entry.is_some_and(|entry| entry.parameters.iter().any(|one| one.name == name))
        };
        let all = || self.params.iter().map(|(name, _)| name);
        let fit = all().all(|name| has(FlowCon::NAME, name));
        if self.policy != Paceline::NAME || !fit || all().all(|name| has(Paceline::NAME, name)) {
            return String::new();
        }
        let (new, old) = (Paceline::NAME, FlowCon::NAME);
        format!(
            "; the default policy is now {new}, but these are parameters of {old}: set --policy \
             {old}, or policy = \"{old}\" in the file"
        )
    }
}
