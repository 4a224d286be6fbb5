//! The allocator's configuration file.
//!
//! It has the settings of `paceline run`, except those for a single run, such as record files.
//! Command line and environment override it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use paceline_api::nodes::Cpuset;
use paceline_api::setting_path::non_empty;
use paceline_api::usage::{BadUsage, unreadable};
use paceline_api::{bounded, toml_error};
use paceline_node::limits::ownership::Owner;
use paceline_node::limits::{ActuatorBackend, OnDrift};
use paceline_node::migration;
use paceline_policy::Variant;
use paceline_policy::limiter::LimiterOptions;
use paceline_server::web;
use serde::Deserialize;

use crate::log::{Filter, Format};

/// How much of an invalid line an error shows, in characters.
const MAX_SHOWN: usize = 80;

/// The settings of `paceline run`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(title = "Configuration"))]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The policy's name.
    #[cfg_attr(feature = "schema", schemars(schema_with = "paceline_policy::schema::policy"))]
    pub policy: Option<String>,
    /// The variant of the policy.
    pub variant: Option<Variant>,
    /// The names of shadow policies, whose decisions are recorded and never applied.
    #[cfg_attr(feature = "schema", schemars(schema_with = "paceline_policy::schema::policies"))]
    pub shadow: Vec<String>,
    /// Decide, but write no limit.
    pub dry_run: bool,
    /// Labels that a container must have besides the one that opts it in.
    pub with_label: Vec<String>,
    /// How limits are written.
    pub actuator: Option<ActuatorBackend>,
    /// The response to a limit that another program changed.
    pub on_drift: Option<OnDrift>,
    /// Orchestrators whose containers are managed as well.
    pub adopt: Vec<Owner>,
    /// The CPU set of each node, by the node's name: at least two, or none.
    pub nodes: BTreeMap<String, Cpuset>,
    /// How jobs move between nodes.
    pub migration: migration::Settings,
    /// The folder of original limits and of the audit log.
    #[serde(deserialize_with = "non_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<PathBuf>"))]
    pub state_dir: Option<PathBuf>,
    /// The control socket's path, or `none`.
    #[serde(deserialize_with = "non_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<PathBuf>"))]
    pub control: Option<PathBuf>,
    /// The log level.
    pub log_level: Option<Filter>,
    /// The log format.
    pub log_format: Option<Format>,
    /// The policy's parameters.
    pub params: BTreeMap<String, f64>,
    /// The limiter's settings.
    pub limiter: LimiterOptions,
    /// The settings of the page, the API and the metrics.
    pub web: web::Settings,
}

/// An invalid file: not TOML, an unknown key, or a value that is not allowed.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ConfigError {
    /// The line, from 1.
    pub line: usize,
    /// The problem there.
    pub problem: String,
}

/// The state folder that a TOML file sets. Other settings are not checked: limits are restored also
/// after a change of the file that a run would refuse.
pub fn state_dir(path: &Path) -> Result<Option<PathBuf>, BadUsage> {
    #[derive(Deserialize)]
    struct State {
        #[serde(default, deserialize_with = "non_empty")]
        state_dir: Option<PathBuf>,
    }
    let at = |error: &dyn std::fmt::Display| BadUsage(format!("{}: {error}", path.display()));
    let text = bounded::SETTINGS.read(path).map_err(|error| unreadable(path, &error))?;
    let state: State = toml::from_str(&text).map_err(|error| {
        let (line, problem) = toml_error::explain(&text, &error);
        at(&ConfigError { line, problem })
    })?;
    let folder = std::path::absolute(path).map_err(|error| at(&error))?;
    Ok(state.state_dir.map(|state| folder.parent().unwrap_or(Path::new("/")).join(state)))
}

impl Config {
    /// Reads a TOML file. Relative paths in it start at its folder.
    pub fn read(path: &Path) -> Result<Self, BadUsage> {
        let text = bounded::SETTINGS.read(path).map_err(|error| unreadable(path, &error))?;
        Self::of_file(&text, path)
    }

    /// Reads the text of standard input. Relative paths in it start at the working folder. A run does
    /// not: it reads its file again at a reload.
    pub fn read_standard_input() -> Result<Self, BadUsage> {
        let path = Path::new("standard input");
        let text = bounded::SETTINGS.read_from(std::io::stdin().lock());
        Self::of_file(&text.map_err(|error| unreadable(path, &error))?, path)
    }

    fn of_file(text: &str, path: &Path) -> Result<Self, BadUsage> {
        let at = |error: &dyn std::fmt::Display| BadUsage(format!("{}: {error}", path.display()));
        let mut config = Self::parse(text).map_err(|error| at(&error))?;
        let folder = std::path::absolute(path).map_err(|error| at(&error))?;
        config.resolve_paths(folder.parent().unwrap_or(Path::new("/")));
        Ok(config)
    }

    /// Reads the text of a TOML file.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(|error| {
            let (line, problem) = toml_error::explain(text, &error);
            let wrong = text.lines().nth(line - 1).unwrap_or_default().trim();
            // The problem already names an unknown key.
            let problem = if problem.starts_with("unknown field") || wrong.is_empty() {
                problem
            } else {
                let shown: String = wrong.chars().take(MAX_SHOWN).collect();
                format!("{shown}: {problem}")
            };
            ConfigError { line, problem }
        })
    }

    fn resolve_paths(&mut self, folder: &Path) {
        let control = self.control.as_mut().filter(|path| path.as_os_str() != "none");
        let web = &mut self.web;
        let files = [&mut web.token_file, &mut web.tls_certificate, &mut web.tls_key];
        let files = files.into_iter().chain([&mut self.state_dir]).filter_map(Option::as_mut);
        for path in files.chain(control) {
            *path = folder.join(&*path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn error(text: &str) -> String {
        Config::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn file_is_read() {
        let text = "policy = \"tradl\"\nvariant = \"published\"\n[params]\nalpha = 0.8\nhold = 4\n";
        let config = Config::parse(text).unwrap();
        assert_eq!(config.policy.as_deref(), Some("tradl"));
        assert_eq!(config.variant, Some(Variant::Published));
        assert_eq!(config.params.get("hold"), Some(&4.0));
        assert_eq!(Config::parse("").unwrap(), Config::default());
    }

    #[test]
    fn unknown_key_is_an_error_with_a_suggestion() {
        for (text, line, nearest) in [
            ("\npolcy = \"tradl\"", 2, "policy"),
            ("[limter]", 1, "limiter"),
            ("on-drift = \"yield\"", 1, "on_drift"),
            ("[web]\nlisen = \"none\"", 2, "listen"),
            ("[limiter]\nenforcment = \"quota\"", 2, "enforcement"),
            ("[limiter]\n[limiter.slew]\nmax-decrease = 0.1", 3, "max_decrease"),
            ("[migration]\nwithn = 3", 2, "within"),
            ("[limiter]\ncanary = { report = 3 }", 2, "reports"),
        ] {
            let error = error(text);
            assert!(error.starts_with(&format!("line {line}: unknown field")), "{error}");
            assert!(error.ends_with(&format!("; did you mean {nearest:?}?")), "{error}");
        }
        let error = error("speed = 1");
        assert!(error.starts_with("line 1: unknown field `speed`, expected one of `policy`, "));
        assert!(!error.contains("did you mean"), "{error}");
    }

    #[test]
    fn invalid_value_is_reported_with_line_key_and_allowed_values() {
        for (text, parts) in [
            ("[params]\nalpha = \"much\"", &["line 2: alpha = \"much\": ", "string \"much\""][..]),
            ("variant = \"exact\"", &["line 1: variant = \"exact\"", "resolved or published"]),
            ("actuator = \"hand\"", &["line 1: actuator = \"hand\"", "`auto`, `cgroup`, `engine`"]),
            ("on_drift = \"panic\"", &["on_drift", "`reassert` or `yield`"]),
            ("adopt = [\"nomad\"]", &["adopt", "`swarm`, `kubernetes`, `compose`"]),
            ("log_level = \"loud\"", &["log_level = \"loud\"", "debug", "MODULE=LEVEL"]),
            ("log_format = \"xml\"", &["log_format", "`text` or `json`"]),
            ("\n[web]\nlisten = \"7224\"", &["line 3: listen = \"7224\"", "unix:/path.sock"]),
            ("[limiter]\nenforcement = \"hope\"", &["line 2", "quota, shares or quota+leftover"]),
            ("[nodes]\na = \"x\"", &["line 2: a = \"x\"", "invalid set of CPUs"]),
            ("[migration]\nby = \"magic\"", &["line 2", "`restart` or `cpuset`"]),
            ("policy = ", &["line 1: policy ="]),
            ("state_dir = ''", &["line 1: state_dir = ''", "expected a path, for example"]),
            ("control = ''", &["line 1: control = ''", "expected a path"]),
            ("[web]\ntls_key = ''", &["line 2: tls_key = ''", "expected a path"]),
        ] {
            let error = error(text);
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn state_folder_is_found_in_a_file_that_a_run_refuses() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("paceline.toml");
        fs::write(&path, "policy = 'gone'\nnew_key = 1\nstate_dir = 'state'\n[limiter]\nx = 1")
            .unwrap();
        assert!(Config::read(&path).is_err());
        assert_eq!(state_dir(&path).unwrap(), Some(folder.path().join("state")));
        fs::write(&path, "policy = 'tradl'").unwrap();
        assert_eq!(state_dir(&path).unwrap(), None);
        fs::write(&path, "\nstate_dir = 7").unwrap();
        let error = state_dir(&path).unwrap_err().to_string();
        assert!(error.contains("paceline.toml: line 2: "), "{error}");
        // Not the folder of the file.
        fs::write(&path, "state_dir = ''").unwrap();
        assert!(state_dir(&path).is_err());
    }

    #[test]
    fn relative_paths_start_at_the_files_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("paceline.toml");
        fs::write(&path, "state_dir = 'state'\ncontrol = '/run/c'\n[web]\ntls_key = 'k'").unwrap();
        let config = Config::read(&path).unwrap();
        assert_eq!(config.state_dir, Some(folder.path().join("state")));
        assert_eq!(config.control, Some(PathBuf::from("/run/c")));
        assert_eq!(config.web.tls_key, Some(folder.path().join("k")));
        fs::write(&path, "control = 'none'").unwrap();
        assert_eq!(Config::read(&path).unwrap().control, Some(PathBuf::from("none")));
        let missing = Config::read(Path::new("/no/such.toml")).unwrap_err().to_string();
        assert!(missing.starts_with("cannot read /no/such.toml: "), "{missing}");
    }

    proptest! {
        #[test]
        fn parsing_any_text_never_panics(text in ".*") {
            drop(Config::parse(&text));
        }
    }
}
