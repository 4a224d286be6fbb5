//! Which policy: on the command line, in a file, or both.

use std::path::PathBuf;

use clap::Args;
use paceline_policy::limiter::{Enforcement, LimiterOptions, LimiterSettings};
use paceline_policy::params::Param;
use paceline_policy::policies::{self, AnyPolicy, FlowCon, Paceline};
use paceline_policy::{Params, Variant};

use crate::config::Config;
use crate::exit::BadUsage;

/// A policy and its parameters.
#[derive(Clone, Debug, PartialEq, Args)]
pub(super) struct PolicyArgs {
    /// The policy; `paceline policies` lists them [default: paceline]
    #[arg(long, value_name = "NAME")]
    pub(super) policy: Option<String>,

    /// How closely to keep to the print of the policy's paper: resolved or published
    /// [default: resolved]
    #[arg(long)]
    pub(super) variant: Option<Variant>,

    /// A parameter of the policy; may be given several times
    #[arg(long = "param", value_name = "NAME=NUMBER")]
    pub(super) params: Vec<Param>,

    /// What a share means: quota (a hard cap), shares (a weight), or quota+leftover (a cap, and what
    /// others leave unused is lent on top of it) [default: the policy's own, see `paceline policies`]
    #[arg(long)]
    pub(super) enforcement: Option<Enforcement>,

    /// A TOML file; examples/deploy/paceline.toml shows all that it may say. The command line rules
    /// over it, and SIGHUP has a run read it again
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
}

/// What the command line and the file come to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chosen {
    pub(super) policy: String,
    pub(super) variant: Variant,
    pub(super) params: Params,
    pub(super) limiter: LimiterSettings,
}

impl PolicyArgs {
    /// What the file says; nothing where there is none.
    pub(super) fn file(&self) -> Result<Config, BadUsage> {
        self.config.as_deref().map(Config::read).transpose().map(Option::unwrap_or_default)
    }

    /// The file's words, with those of the command line over them.
    pub(super) fn chosen(&self) -> Result<Chosen, BadUsage> {
        Ok(self.over(&self.file()?))
    }

    /// The same of a file that has been read.
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

    /// What to do with parameters of the policy that was the default in version 0.1.0.
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
            "; the default policy is {new} now, and these are parameters of {old}: name it \
             (--policy {old}, or policy = \"{old}\" in the file)"
        )
    }
}
