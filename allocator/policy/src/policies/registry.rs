use super::{
    Dltap, Dqoes, Fifo, FifoGang, FlowCon, Kod2, Paceline, SpeCon, Spread, Srpt, Tradl, Unlimited,
    dltap, dqoes, fifo, fifo_gang, flowcon, kod2, none, paceline, specon, spread, srpt, tradl,
};
use crate::cluster::{GangPolicy, TaskPolicy};
use crate::limiter::Enforcement;
use crate::names::did_you_mean;
use crate::params::{ParamError, Parameter, Params};
use crate::policy::Policy;
use crate::variant::Variant;

/// Any policy, by the shape of the frames that it answers.
#[derive(Debug)]
pub enum AnyPolicy {
    /// Of running jobs, on one node or on several.
    Jobs(Box<dyn Policy>),
    /// Of the tasks of distributed jobs.
    Tasks(Box<dyn TaskPolicy>),
    /// Of whole distributed jobs.
    Gangs(Box<dyn GangPolicy>),
}

/// Where a policy works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// On the jobs of one node, whose limits it sets.
    Node,
    /// On a cluster, where it places, moves or scales jobs.
    Cluster,
}

/// A policy in the registry.
#[derive(Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// Where it works.
    pub scope: Scope,
    /// A short description for people.
    pub about: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// The default enforcement: what a share means to the kernel.
    pub enforcement: Enforcement,
    build: fn(Variant, &Params) -> Result<AnyPolicy, ParamError>,
}

impl Entry {
    /// Whether it uses figures that a policy cannot know in general. It serves for comparison only.
    pub fn is_yardstick(&self) -> bool {
        self.source.starts_with("yardstick")
    }

    /// Whether it comes from a paper, so that its two variants differ.
    pub fn is_from_paper(&self) -> bool {
        !["yardstick", "baseline", OWN].iter().any(|other| self.source.starts_with(other))
    }

    /// The policy of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|entry| entry.name == name)
    }
}

/// The source of a policy that comes from no paper.
const OWN: &str = "this project";

/// Every policy, in the order in which they are listed to people.
pub const ALL: &[Entry] = &[
    Entry {
        name: Unlimited::NAME,
        scope: Scope::Node,
        about: "no limits: the kernel shares the CPU",
        source: "baseline",
        parameters: none::PARAMETERS,
        enforcement: Enforcement::QuotaLeftover,
        build: |_, params| jobs(Unlimited::new(params)?),
    },
    Entry {
        name: FlowCon::NAME,
        scope: Scope::Node,
        about: "CPU goes to the jobs whose loss still falls",
        source: "Zheng et al., ICPP 2019",
        parameters: flowcon::PARAMETERS,
        enforcement: Enforcement::QuotaLeftover,
        build: |variant, params| jobs(FlowCon::new(variant, params)?),
    },
    Entry {
        name: Tradl::NAME,
        scope: Scope::Node,
        about: "limits jobs whose loss is acceptable and ends them at their objective",
        source: "Song, Fordham University, section 5.1",
        parameters: tradl::PARAMETERS,
        enforcement: Enforcement::QuotaLeftover,
        build: |variant, params| jobs(Tradl::new(variant, params)?),
    },
    Entry {
        name: Dqoes::NAME,
        scope: Scope::Node,
        about: "limits jobs whose batches are quicker than asked in favour of slower ones",
        source: "Song, Fordham University, section 5.2",
        parameters: dqoes::PARAMETERS,
        enforcement: Enforcement::QuotaLeftover,
        build: |variant, params| jobs(Dqoes::new(variant, params)?),
    },
    Entry {
        name: Paceline::NAME,
        scope: Scope::Node,
        about: "least work left first, no job later than under equal sharing",
        source: OWN,
        parameters: paceline::PARAMETERS,
        enforcement: Enforcement::Quota,
        build: |_, params| jobs(Paceline::new(params)?),
    },
    Entry {
        name: Srpt::NAME,
        scope: Scope::Node,
        about: "a yardstick: the job with the least declared work left gets the machine",
        source: "yardstick: Schrage, Operations Research 1968",
        parameters: srpt::PARAMETERS,
        enforcement: Enforcement::QuotaLeftover,
        build: |_, params| jobs(Srpt::new(params)?),
    },
    Entry {
        name: SpeCon::NAME,
        scope: Scope::Cluster,
        about: "converged jobs move to where they are least in the way",
        source: "Mao et al., SpeCon",
        parameters: specon::PARAMETERS,
        enforcement: Enforcement::QuotaLeftover,
        build: |variant, params| jobs(SpeCon::new(variant, params)?),
    },
    Entry {
        name: Spread::NAME,
        scope: Scope::Cluster,
        about: "a new job goes to the node with the fewest, and stays",
        source: "baseline for specon",
        parameters: spread::PARAMETERS,
        enforcement: Enforcement::QuotaLeftover,
        build: |_, params| jobs(Spread::new(params)?),
    },
    Entry {
        name: Dltap::NAME,
        scope: Scope::Cluster,
        about: "parameter servers go to where most of their workers are",
        source: "DLTAP, Algorithm 1",
        parameters: dltap::PARAMETERS,
        enforcement: Enforcement::QuotaLeftover,
        build: |_, params| Ok(AnyPolicy::Tasks(Box::new(Dltap::new(params)?))),
    },
    Entry {
        name: Kod2::NAME,
        scope: Scope::Cluster,
        about: "jobs start complete, shrink for jobs of larger weight, and grow when none waits",
        source: "Jeong and Yu, KIPS Transactions 11(7), 2022",
        parameters: kod2::PARAMETERS,
        enforcement: Enforcement::QuotaLeftover,
        build: |variant, params| gangs(Kod2::new(variant, params)?),
    },
    Entry {
        name: Fifo::NAME,
        scope: Scope::Cluster,
        about: "each task is bound as soon as it fits: can deadlock",
        source: "baseline for kod2",
        parameters: fifo::PARAMETERS,
        enforcement: Enforcement::QuotaLeftover,
        build: |_, params| gangs(Fifo::new(params)?),
    },
    Entry {
        name: FifoGang::NAME,
        scope: Scope::Cluster,
        about: "jobs start complete and in order: the first in line blocks the others",
        source: "baseline for kod2",
        parameters: fifo_gang::PARAMETERS,
        enforcement: Enforcement::QuotaLeftover,
        build: |_, params| gangs(FifoGang::new(params)?),
    },
];

#[expect(clippy::unnecessary_wraps, reason = "it ends a constructor that may fail")]
fn jobs(policy: impl Policy + 'static) -> Result<AnyPolicy, ParamError> {
    Ok(AnyPolicy::Jobs(Box::new(policy)))
}

#[expect(clippy::unnecessary_wraps, reason = "it ends a constructor that may fail")]
fn gangs(policy: impl GangPolicy + 'static) -> Result<AnyPolicy, ParamError> {
    Ok(AnyPolicy::Gangs(Box::new(policy)))
}

/// Builds the policy called `name`; parameters that are not given have their documented defaults.
pub fn build(name: &str, variant: Variant, params: &Params) -> Result<AnyPolicy, ParamError> {
    if let Some(entry) = Entry::named(name) {
        return (entry.build)(variant, params);
    }
    let known: Vec<_> = ALL.iter().map(|entry| entry.name).collect();
    Err(ParamError::UnknownPolicy {
        name: name.to_owned(),
        hint: did_you_mean(name, known.iter().copied()),
        known: known.join(", "),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_policy_is_built_with_its_defaults_under_its_own_name() {
        for entry in ALL {
            for variant in [Variant::Resolved, Variant::Published] {
                let name = match build(entry.name, variant, &Params::default()).unwrap() {
                    AnyPolicy::Jobs(policy) => policy.name(),
                    AnyPolicy::Tasks(policy) => policy.name(),
                    AnyPolicy::Gangs(policy) => policy.name(),
                };
                assert_eq!(name, entry.name);
            }
        }
    }

    #[test]
    fn job_policies_report_every_parameter_in_force() {
        for entry in ALL {
            let AnyPolicy::Jobs(policy) =
                build(entry.name, Variant::Resolved, &Params::default()).unwrap()
            else {
                continue;
            };
            let defaults: BTreeMap<_, _> = entry
                .parameters
                .iter()
                .map(|parameter| (parameter.name, parameter.default))
                .collect();
            assert_eq!(policy.params(), defaults);
        }
    }

    #[test]
    fn dependent_defaults_are_reported_as_in_force() {
        let in_force = |name, variant, given: &[(&str, f64)]| {
            let mut params = Params::default();
            for (name, value) in given {
                params.set(*name, *value);
            }
            match build(name, variant, &params).unwrap() {
                AnyPolicy::Jobs(policy) => policy.params(),
                AnyPolicy::Tasks(_) | AnyPolicy::Gangs(_) => BTreeMap::new(),
            }
        };
        assert_eq!(in_force("tradl", Variant::Published, &[]).get("confirm"), Some(&1.0));
        let given = in_force("tradl", Variant::Published, &[("confirm", 2.0)]);
        assert_eq!(given.get("confirm"), Some(&2.0));
        let flowcon = in_force("flowcon", Variant::Resolved, &[("interval", 5.0)]);
        assert_eq!((flowcon["interval"], flowcon["max_interval"]), (5.0, 80.0));
    }

    #[test]
    fn every_listed_parameter_can_be_set_and_no_other() {
        for entry in ALL {
            for parameter in entry.parameters {
                let mut params = Params::default();
                params.set(parameter.name, parameter.default);
                build(entry.name, Variant::Resolved, &params).unwrap();
                params.set(parameter.name, f64::NAN);
                assert!(build(entry.name, Variant::Resolved, &params).is_err(), "{}", entry.name);
            }
            let mut params = Params::default();
            params.set("speed", 1.0);
            let error = build(entry.name, Variant::Resolved, &params).unwrap_err().to_string();
            assert!(error.contains("speed") && error.contains(entry.name), "{error}");
        }
    }
}
