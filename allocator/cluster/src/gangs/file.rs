//! The TOML file that describes a distributed job.

use std::collections::BTreeMap;
use std::path::Path;

use paceline_api::labels::{LabelError, Labels};
use paceline_api::usage::{BadUsage, unreadable};
use paceline_api::{bounded, toml_error};
use paceline_policy::cluster::Role;
use serde::Deserialize;

use super::placeholders::Placeholders;

/// The largest number of tasks in a job. Each task is a Swarm service of its own.
pub const MAX_TASKS: u32 = 1_000;
/// The longest job name, in bytes. Task names are longer and must be valid host names.
const MAX_NAME_LEN: usize = 40;
/// The default port of parameter servers.
const PORT: u16 = 7300;

/// A distributed job, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Gang {
    /// What it is called.
    pub name: String,
    /// The image of all its tasks.
    pub image: String,
    /// The network of its tasks [default: a network of its own].
    pub network: Option<String>,
    /// The environment of all its tasks.
    pub env: BTreeMap<String, String>,
    /// Labels of all its containers.
    pub labels: BTreeMap<String, String>,
    /// Folders and volumes of all its tasks.
    pub mounts: Vec<Mount>,
    /// Its parameter servers.
    pub ps: Part,
    /// Its workers. Their count is the largest number that it can use.
    pub worker: Part,
    /// The smallest number of workers with which it can run.
    pub min: u32,
}

/// Tasks of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// How many.
    pub count: u32,
    /// The CPUs that each needs.
    pub cpus: f64,
    /// The memory that each needs, in bytes; 0 if the file gives none.
    pub memory: f64,
    /// The command of each, after the image's entry point: see [`Gang::command`].
    pub args: Vec<String>,
    /// The machine of each by name, if the owner chooses it instead of a policy.
    pub nodes: Vec<String>,
    /// The port of each.
    pub port: u16,
}

/// A folder of the machine or a volume that is mounted in a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// A folder that exists on every machine if it begins with `/`, otherwise a volume.
    pub source: String,
    /// The path inside the container.
    pub target: String,
    /// Whether the container cannot write to it.
    pub read_only: bool,
}

/// An invalid job file.
#[derive(Debug, thiserror::Error)]
pub enum GangError {
    /// Invalid TOML, an unknown key, or a value of the wrong type.
    #[error("line {line}: {problem}")]
    Toml {
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        problem: String,
    },
    /// A value that is not allowed.
    #[error("invalid {field} {value}: expected {allowed}")]
    Value {
        /// The key.
        field: &'static str,
        /// Its value.
        value: String,
        /// The allowed values.
        allowed: String,
    },
    /// A command or a variable with an invalid placeholder.
    #[error("{field}: {why}")]
    Placeholders {
        /// The key.
        field: String,
        /// What is wrong.
        why: String,
    },
    /// An invalid label.
    #[error("labels: {0}")]
    Label(#[from] LabelError),
}

/// A distributed job: parameter servers and workers, each task a service of its own.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(title = "Distributed job"))]
#[serde(deny_unknown_fields)]
struct File {
    /// The name: at most 40 lower-case letters, digits and inner hyphens.
    #[cfg_attr(
        feature = "schema",
        schemars(regex(pattern = "^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$"))
    )]
    name: String,
    /// The image of all its tasks.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "[^ ]")))]
    image: String,
    /// The network of its tasks. By default it is one of its own.
    network: Option<String>,
    /// The environment of all its tasks. `{index}` (from 0), `{number}` (from 1), `{count}` and `{servers}`
    /// differ by task.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Labels of all its containers.
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// Folders and volumes of all its tasks: `SOURCE:/TARGET`, or `SOURCE:/TARGET:ro`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(inner(regex(pattern = "^[^:]+:/[^:]*(:ro)?$"))))]
    mounts: Vec<String>,
    /// Its parameter servers, which hold the model.
    ps: Option<Servers>,
    /// Its workers, which train.
    worker: Workers,
}

/// The parameter servers of a distributed job.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Servers {
    /// How many.
    #[cfg_attr(feature = "schema", schemars(range(max = MAX_TASKS)))]
    count: u32,
    /// The CPUs that each needs.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    cpus: f64,
    /// The memory that each needs, in bytes.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    memory: Option<f64>,
    /// The port of each. The default is 7300.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    port: Option<u16>,
    /// The command of each, after the image's entry point, with the placeholders of `env`.
    #[serde(default)]
    args: Vec<String>,
    /// The machine of each by name, if the owner chooses it instead of a policy.
    #[serde(default)]
    nodes: Vec<String>,
}

/// The workers of a distributed job.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Workers {
    /// The least number with which it can run.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = MAX_TASKS)))]
    min: u32,
    /// The largest number that it can use. The default is `min`.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = MAX_TASKS)))]
    max: Option<u32>,
    /// The CPUs that each needs.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    cpus: f64,
    /// The memory that each needs, in bytes.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    memory: Option<f64>,
    /// The command of each, after the image's entry point, with the placeholders of `env`.
    #[serde(default)]
    args: Vec<String>,
    /// The machine of each by name, if the owner chooses it instead of a policy.
    #[serde(default)]
    nodes: Vec<String>,
}

/// The JSON Schema of a file.
#[cfg(feature = "schema")]
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(File)
}

impl Gang {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, BadUsage> {
        let at =
            |error: &dyn std::fmt::Display| BadUsage(format!("{}: {error}", bounded::shown(path)));
        let text = bounded::JOB.read_given(path).map_err(|error| unreadable(path, &error))?;
        Self::parse(&text).map_err(|error| at(&error))
    }

    /// Reads the text of a file.
    pub fn parse(text: &str) -> Result<Self, GangError> {
        let file: File = toml::from_str(text).map_err(|error| {
            let (line, problem) = toml_error::explain(text, &error);
            GangError::Toml { line, problem }
        })?;
        let mounts = file.mounts.iter().map(|text| mount(text)).collect::<Result<_, _>>()?;
        let File { name, image, network, env, labels, ps, worker, .. } = file;
        let ps = ps.map_or_else(Part::default, |ps| Part {
            count: ps.count,
            cpus: ps.cpus,
            memory: ps.memory.unwrap_or(0.0),
            args: ps.args,
            nodes: ps.nodes,
            port: ps.port.unwrap_or(PORT),
        });
        let min = worker.min;
        let worker = Part {
            count: worker.max.unwrap_or(min),
            cpus: worker.cpus,
            memory: worker.memory.unwrap_or(0.0),
            args: worker.args,
            nodes: worker.nodes,
            port: PORT,
        };
        let gang = Self { name, image, network, env, labels, mounts, ps, worker, min };
        gang.check()?;
        Ok(gang)
    }

    fn check(&self) -> Result<(), GangError> {
        let (name, of) = (&self.name, |character: char| {
            character.is_ascii_lowercase() || character.is_ascii_digit()
        });
        let is_name = name.starts_with(of)
            && name.ends_with(of)
            && name.len() <= MAX_NAME_LEN
            && name.chars().all(|character| of(character) || character == '-');
        let allowed =
            format!("at most {MAX_NAME_LEN} lower-case letters, digits and inner hyphens");
        ensure(is_name, "name", format_args!("{name:?}"), &allowed)?;
        for (field, text) in [("image", Some(&self.image)), ("network", self.network.as_ref())] {
            let said = text.is_none_or(|text| !text.trim().is_empty());
            ensure(
                said,
                field,
                format_args!("{:?}", text.map_or("", |text| text.as_str())),
                "a name",
            )?;
        }
        for key in self.env.keys() {
            let good = !key.is_empty() && !key.contains(['=', '\0']);
            ensure(good, "env", format_args!("{key:?}"), "a name without an equals sign")?;
        }
        ensure(self.min > 0, "worker.min", self.min, "at least 1")?;
        let (most, least) = (self.worker.count, format!("at least worker.min, {}", self.min));
        ensure(most >= self.min, "worker.max", most, &least)?;
        let tasks = self.ps.count.saturating_add(most);
        let few = format!("at most {MAX_TASKS}");
        ensure(tasks <= MAX_TASKS, "number of tasks", tasks, &few)?;
        if self.ps.count > 0 {
            self.ps.check(["ps.cpus", "ps.memory", "ps.nodes"])?;
            ensure(self.ps.port != 0, "ps.port", self.ps.port, "a number from 1 to 65535")?;
        }
        self.worker.check(["worker.cpus", "worker.memory", "worker.nodes"])?;
        Labels::parse(&self.labels)?;
        for role in [Role::Ps, Role::Worker] {
            // Placeholders that are valid for one task are valid for all tasks of its
            // role.
            self.command(role, 0)?;
            self.environment(role, 0)?;
        }
        Ok(())
    }

    /// The tasks of one kind.
    pub fn part(&self, role: Role) -> &Part {
        match role {
            Role::Ps => &self.ps,
            Role::Worker => &self.worker,
        }
    }

    /// The name of a task, which is also its host name on the job's network.
    pub fn task(&self, role: Role, index: u32) -> String {
        format!("{}-{}-{index}", self.name, role_name(role))
    }

    /// A task's command, with the placeholders `{index}` (from 0), `{number}` (from 1),
    /// `{count}` and `{servers}` filled in.
    pub fn command(&self, role: Role, index: u32) -> Result<Vec<String>, GangError> {
        let servers = self.servers();
        let placeholders = self.placeholders(role, index, &servers);
        let fill = |text: &String| {
            let wrong =
                |why| GangError::Placeholders { field: format!("{}.args", role_name(role)), why };
            placeholders.fill(text).map_err(wrong)
        };
        self.part(role).args.iter().map(fill).collect()
    }

    /// A task's environment, with the same placeholders filled in.
    pub fn environment(&self, role: Role, index: u32) -> Result<Vec<String>, GangError> {
        let servers = self.servers();
        let placeholders = self.placeholders(role, index, &servers);
        let fill = |(key, text): (&String, &String)| {
            let wrong = |why| GangError::Placeholders { field: format!("env.{key}"), why };
            Ok(format!("{key}={}", placeholders.fill(text).map_err(wrong)?))
        };
        self.env.iter().map(fill).collect()
    }

    fn placeholders<'a>(&self, role: Role, index: u32, servers: &'a str) -> Placeholders<'a> {
        Placeholders { index, count: self.part(role).count, servers }
    }

    /// The addresses of the parameter servers, separated by commas.
    fn servers(&self) -> String {
        let port = self.ps.port;
        let one = |index| format!("{}:{port}", self.task(Role::Ps, index));
        (0..self.ps.count).map(one).collect::<Vec<_>>().join(",")
    }
}

impl Part {
    fn check(&self, [cpus, memory, nodes]: [&'static str; 3]) -> Result<(), GangError> {
        let (cores, bytes) = (self.cpus, self.memory);
        ensure(cores.is_finite() && cores > 0.0, cpus, cores, "a number above 0")?;
        ensure(bytes.is_finite() && bytes >= 0.0, memory, bytes, "a number of bytes")?;
        let chosen = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        let allowed = format!("{} names, one for each task, or none", self.count);
        let value = format_args!("of length {chosen}");
        ensure(chosen == 0 || chosen == self.count, nodes, value, &allowed)
    }
}

/// The name of a role in task names, labels and job files.
pub const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Ps => "ps",
        Role::Worker => "worker",
    }
}

fn mount(text: &str) -> Result<Mount, GangError> {
    let wrong = || GangError::Value {
        field: "mounts",
        value: format!("{text:?}"),
        allowed: "SOURCE:/TARGET or SOURCE:/TARGET:ro, where SOURCE is a volume or an absolute \
                  path, for example /srv/data:/data:ro"
            .to_owned(),
    };
    let mut parts = text.split(':');
    let (source, target) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let read_only = match parts.next() {
        None => false,
        Some("ro") => true,
        Some(_) => return Err(wrong()),
    };
    let is_source = !source.is_empty() && (source.starts_with('/') || !source.contains('/'));
    if !is_source || !target.starts_with('/') || parts.next().is_some() {
        return Err(wrong());
    }
    Ok(Mount { source: source.to_owned(), target: target.to_owned(), read_only })
}

fn ensure(
    holds: bool,
    field: &'static str,
    value: impl std::fmt::Display,
    allowed: &str,
) -> Result<(), GangError> {
    if holds {
        return Ok(());
    }
    Err(GangError::Value { field, value: value.to_string(), allowed: allowed.to_owned() })
}

#[cfg(test)]
pub(super) mod tests;
