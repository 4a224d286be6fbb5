//! The settings of a run. Command line and environment override the file, which overrides the
//! defaults.

use std::collections::BTreeMap;

use paceline_api::nodes::{Cpuset, Node, Nodes};
use paceline_api::usage::BadUsage;
use paceline_node::controller::Shadow;
use paceline_node::limits::ownership::Owner;
use paceline_node::limits::{ActuatorBackend, OnDrift};
use paceline_node::migration;
use paceline_policy::limiter::Enforcement;
use paceline_policy::policies::{self, AnyPolicy, Scope, SpeCon, Unlimited};
use paceline_policy::{Params, Policy, Variant};
use paceline_server::web::{self, Address};
use serde_json::{Value, json};

use super::super::control_args::ControlArgs;
use super::super::policy_args::Chosen;
use super::super::state::StateArgs;
use super::{Place, RunArgs};
use crate::config::Config;
use crate::log::{Filter, Format, Given};

/// The default address of an agent.
pub(in super::super) const AGENT_ADDRESS: &str = "0.0.0.0:7224";

/// Merged settings.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings {
    pub(super) chosen: Chosen,
    pub(super) shadow: Vec<String>,
    pub(super) log_level: Filter,
    pub(super) log_format: Format,
    pub(super) fixed: Fixed,
    /// Whether the containers are those of a Kubernetes node.
    pub(super) of_kubernetes: bool,
}

/// Settings that need a restart.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fixed {
    pub(super) actuator: ActuatorBackend,
    pub(super) on_drift: OnDrift,
    pub(super) adopt: Vec<Owner>,
    pub(super) dry_run: bool,
    pub(super) with_label: Vec<String>,
    pub(super) nodes: Vec<Node>,
    pub(super) migration: migration::Settings,
    pub(super) control: ControlArgs,
    pub(super) web: web::Settings,
    pub(super) state: StateArgs,
}

/// The objects that the settings describe, ready to run.
#[derive(Debug)]
pub(super) struct Built {
    pub(super) policy: Box<dyn Policy>,
    pub(super) shadows: Vec<Shadow>,
    pub(super) nodes: Nodes,
}

impl RunArgs {
    /// Reads the file and checks the merged settings. An error names the file if the file
    /// causes it.
    pub(super) fn settings(&self, log: &Given) -> Result<Settings, BadUsage> {
        self.settings_over(&self.policy.file()?, log)
    }

    fn settings_over(&self, file: &Config, log: &Given) -> Result<Settings, BadUsage> {
        let settings = self.over(file, log);
        settings.build().map(drop).map_err(|error| match &self.policy.config {
            Some(path) if self.over(&Config::default(), log).build().is_ok() => {
                BadUsage(format!("{}: {error}", path.display()))
            }
            Some(_) | None => error,
        })?;
        Ok(settings)
    }

    /// Checks the settings over those of a file as a run does before it begins: also files that they
    /// name, and hosts.
    pub(in crate::cli) async fn check(&self, file: &Config, log: &Given) -> Result<(), BadUsage> {
        let web = self.settings_over(file, log)?.fixed.web;
        web.check_all().await.map_err(|error| match &self.policy.config {
            Some(path) => BadUsage(format!("{}: {error}", path.display())),
            None => error,
        })
    }

    /// The merged and checked settings, as a configuration file has them.
    pub(in crate::cli) fn shown(&self, log: &Given) -> Result<Value, BadUsage> {
        Ok(self.settings(log)?.as_file())
    }

    fn over(&self, file: &Config, log: &Given) -> Settings {
        let web = self.web.clone();
        let mut adopt = given_or(&self.actuator.adopt, &file.adopt);
        let mut listen = web.listen.or_else(|| file.web.listen.clone());
        if self.place == Place::Swarm {
            adopt.extend((!adopt.contains(&Owner::Swarm)).then_some(Owner::Swarm));
            listen.get_or_insert_with(|| Address::Tcp(AGENT_ADDRESS.to_owned()));
        }
        Settings {
            of_kubernetes: self.place == Place::Kubernetes,
            chosen: self.policy.over(file),
            shadow: given_or(&self.shadow, &file.shadow),
            log_level: log.level.as_ref().or(file.log_level.as_ref()).cloned().unwrap_or_default(),
            log_format: log.format.or(file.log_format).unwrap_or_default(),
            fixed: Fixed {
                actuator: self.actuator.actuator.or(file.actuator).unwrap_or_default(),
                on_drift: self.actuator.on_drift.or(file.on_drift).unwrap_or_default(),
                adopt,
                dry_run: self.dry_run || file.dry_run,
                with_label: given_or(&self.with_label, &file.with_label),
                nodes: given_or(&self.node.nodes, &nodes(&file.nodes)),
                migration: self.node.settings(file.migration),
                control: self.control.over(file.control.as_ref()),
                web: web::Settings {
                    listen,
                    token_file: web.token_file.or_else(|| file.web.token_file.clone()),
                    tls_certificate: web
                        .tls_certificate
                        .or_else(|| file.web.tls_certificate.clone()),
                    tls_key: web.tls_key.or_else(|| file.web.tls_key.clone()),
                    otlp: web.otlp || file.web.otlp,
                },
                state: self.state.over(file.state_dir.as_ref()),
            },
        }
    }
}

fn nodes(file: &BTreeMap<String, Cpuset>) -> Vec<Node> {
    let node = |(name, cpus): (&String, &Cpuset)| Node { name: name.clone(), cpus: cpus.clone() };
    file.iter().map(node).collect()
}

fn given_or<T: Clone>(given: &[T], file: &[T]) -> Vec<T> {
    if given.is_empty() { file.to_vec() } else { given.to_vec() }
}

impl Settings {
    /// The policy, if it can run on this machine's nodes, and the shadow policies with default
    /// parameters.
    pub(super) fn build(&self) -> Result<Built, BadUsage> {
        self.chosen.limiter.check().map_err(|error| BadUsage(error.to_string()))?;
        self.fixed.migration.check().map_err(|error| BadUsage(error.to_string()))?;
        self.fixed.web.check()?;
        // An engine that is asked for a label without a name lists all containers.
        let has_name = |label: &&String| label.split('=').next().is_some_and(|key| !key.is_empty());
        if let Some(label) = self.fixed.with_label.iter().find(|label| !has_name(label)) {
            let expected = "expected KEY=VALUE, for example team=vision";
            return Err(BadUsage(format!("invalid with_label {label:?}: {expected}")));
        }
        if self.of_kubernetes {
            self.check_kubernetes()?;
        }
        let nodes = Nodes::new(self.fixed.nodes.clone());
        let nodes = nodes.map_err(|error| BadUsage(error.to_string()))?;
        let fitting: Fitting = if nodes.is_empty() { of_one_node } else { of_several };
        let policy = fitting(&self.chosen.policy, self.chosen.build()?)?;
        let shadow = |name: &String| {
            let policy = policies::build(name, Variant::default(), &Params::default())
                .map_err(|error| BadUsage(format!("shadow: {error}")))?;
            Ok(Shadow::new(fitting(name, policy)?))
        };
        let shadows = self.shadow.iter().map(shadow).collect::<Result<_, BadUsage>>()?;
        Ok(Built { policy, shadows, nodes })
    }

    /// The same for a run whose `fixed` settings stay: the policy must fit the nodes that it has.
    pub(super) fn build_for(&self, fixed: Fixed) -> Result<Built, BadUsage> {
        let waiting = fixed.differences(&self.fixed);
        let in_force = Self { fixed, ..self.clone() };
        in_force.build().map_err(|error| {
            if waiting.is_empty() {
                return error;
            }
            let waiting = waiting.join(", ");
            BadUsage(format!("{error}; only a restart applies the change of {waiting}"))
        })
    }

    /// The kubelet sets the weights of pods, and their CPUs.
    fn check_kubernetes(&self) -> Result<(), BadUsage> {
        if self.chosen.limiter.enforcement == Enforcement::Shares {
            return Err(BadUsage(
                "invalid enforcement \"shares\" on Kubernetes: expected quota or quota+leftover, \
                 because a pod's weight is its request"
                    .to_owned(),
            ));
        }
        if !self.fixed.nodes.is_empty() {
            return Err(BadUsage(
                "cannot split a Kubernetes node by --node: the kubelet moves and starts its pods"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// The differences in settings that a reload can apply, as `key: before -> after`.
    pub(super) fn changes(&self, new: &Self) -> Vec<String> {
        let (before, after) = (self.by_key(), new.by_key());
        let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
        keys.sort();
        keys.dedup();
        let unset = "unset".to_owned();
        let value = |of: &BTreeMap<String, String>, key| of.get(key).unwrap_or(&unset).clone();
        keys.into_iter()
            .filter(|key| before.get(*key) != after.get(*key))
            .map(|key| format!("{key}: {} -> {}", value(&before, key), value(&after, key)))
            .collect()
    }

    /// All settings, as a configuration file has them. What is not set is missing.
    fn as_file(&self) -> Value {
        let Self { chosen, shadow, log_level, log_format, fixed, of_kubernetes: _ } = self;
        let Fixed { actuator, on_drift, adopt, dry_run, with_label, nodes, migration, .. } = fixed;
        let web::Settings { listen, token_file, tls_certificate, tls_key, otlp } = &fixed.web;
        let nodes: BTreeMap<_, _> =
            nodes.iter().map(|node| (node.name.clone(), node.cpus.to_string())).collect();
        let control = fixed.control.socket().unwrap_or_else(|| "none".into());
        let mut all = json!({
            "policy": chosen.policy,
            "variant": chosen.variant.to_string(),
            "shadow": shadow,
            "log_level": log_level.to_string(),
            "log_format": log_format.to_string(),
            "dry_run": dry_run,
            "with_label": with_label,
            "actuator": actuator,
            "on_drift": on_drift,
            "adopt": adopt,
            "nodes": nodes,
            "migration": migration,
            "state_dir": fixed.state.folder(),
            "control": control,
            "params": chosen.params.iter().collect::<BTreeMap<_, _>>(),
            "limiter": chosen.limiter,
            "web": {
                "listen": listen.clone().unwrap_or_default().to_string(),
                "token_file": token_file,
                "tls_certificate": tls_certificate,
                "tls_key": tls_key,
                "otlp": otlp,
            },
        });
        remove_unset(&mut all);
        all
    }

    /// The settings that a reload can apply, by the file's keys.
    fn by_key(&self) -> BTreeMap<String, String> {
        let Self { chosen, shadow, log_level, log_format, fixed: _, of_kubernetes: _ } = self;
        let Chosen { policy, variant, params, limiter } = chosen;
        let mut keys = BTreeMap::new();
        let all = json!({
            "policy": policy,
            "variant": variant.to_string(),
            "params": params.iter().collect::<BTreeMap<_, _>>(),
            "limiter": limiter,
            "shadow": shadow.join(", "),
            "log_level": log_level.to_string(),
            "log_format": log_format.to_string(),
        });
        flatten("", &all, &mut keys);
        keys
    }
}

/// Removes members without a value: TOML has none.
fn remove_unset(value: &mut Value) {
    if let Value::Object(members) = value {
        members.retain(|_, member| !member.is_null());
        members.values_mut().for_each(remove_unset);
    }
}

/// Collects the leaves of a JSON tree by their dotted paths.
fn flatten(key: &str, value: &Value, keys: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                flatten(&key, member, keys);
            }
        }
        Value::Null => {}
        Value::String(text) if text.is_empty() => {}
        Value::String(text) => drop(keys.insert(key.to_owned(), text.clone())),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            keys.insert(key.to_owned(), value.to_string());
        }
    }
}

impl Fixed {
    /// The keys whose values differ in `new`.
    pub(super) fn differences(&self, new: &Self) -> Vec<&'static str> {
        let Self { actuator, on_drift, adopt, dry_run, with_label, .. } = self;
        let Self { nodes, migration, control, web, state, .. } = self;
        let web::Settings { listen, token_file, tls_certificate, tls_key, otlp } = web;
        let usual = |address: &Option<Address>| address.clone().unwrap_or_default();
        let all = [
            ("actuator", *actuator == new.actuator),
            ("on_drift", *on_drift == new.on_drift),
            ("adopt", *adopt == new.adopt),
            ("dry_run", *dry_run == new.dry_run),
            ("with_label", *with_label == new.with_label),
            ("nodes", *nodes == new.nodes),
            ("migration", *migration == new.migration),
            ("control", control.socket() == new.control.socket()),
            ("state_dir", state.folder() == new.state.folder()),
            ("web.listen", usual(listen) == usual(&new.web.listen)),
            ("web.token_file", *token_file == new.web.token_file),
            ("web.tls_certificate", *tls_certificate == new.web.tls_certificate),
            ("web.tls_key", *tls_key == new.web.tls_key),
            ("web.otlp", *otlp == new.web.otlp),
        ];
        all.into_iter().filter_map(|(key, same)| (!same).then_some(key)).collect()
    }
}

/// Checks whether a policy can run here.
type Fitting = fn(&str, AnyPolicy) -> Result<Box<dyn Policy>, BadUsage>;

fn of_one_node(name: &str, policy: AnyPolicy) -> Result<Box<dyn Policy>, BadUsage> {
    let of_cluster =
        policies::ALL.iter().any(|entry| entry.name == name && entry.scope == Scope::Cluster);
    match policy {
        AnyPolicy::Jobs(policy) if !of_cluster => Ok(policy),
        AnyPolicy::Jobs(policy) if policy.name() == SpeCon::NAME => Err(BadUsage(format!(
            "cannot run {name} on one node: it is a policy of a cluster; split this machine's CPUs \
             into nodes by `--node a=0 --node b=1`"
        ))),
        AnyPolicy::Jobs(_) | AnyPolicy::Tasks(_) | AnyPolicy::Gangs(_) => Err(BadUsage(format!(
            "cannot run {name} on one node: it is a policy of a cluster; use `paceline manager`"
        ))),
    }
}

/// On several nodes only a policy that moves running jobs makes sense, or none at all.
fn of_several(name: &str, policy: AnyPolicy) -> Result<Box<dyn Policy>, BadUsage> {
    match policy {
        AnyPolicy::Jobs(policy) if [SpeCon::NAME, Unlimited::NAME].contains(&policy.name()) => {
            Ok(policy)
        }
        AnyPolicy::Jobs(_) | AnyPolicy::Tasks(_) | AnyPolicy::Gangs(_) => Err(BadUsage(format!(
            "cannot run {name} on several nodes: it does not move running jobs; use {} or {}",
            SpeCon::NAME,
            Unlimited::NAME
        ))),
    }
}

#[cfg(test)]
mod tests;
