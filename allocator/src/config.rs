//! The allocator's configuration file.
//!
//! It may say whatever the command line of `paceline run` says, but for what belongs to one run
//! alone, such as the files that it records to. The command line and the environment rule over it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use paceline_policy::Variant;
use paceline_policy::limiter::LimiterOptions;
use serde::Deserialize;

use crate::actuate::fence::Owner;
use crate::actuate::{Means, OnDrift};
use crate::exit::BadUsage;
use crate::log::{Filter, Format};
use crate::migrate;
use crate::nodes::Cpuset;
use crate::toml_error;
use crate::web;

/// So much of a line is shown that is wrong.
const SHOWN: usize = 80;

/// What a file may say.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The policy's name.
    pub policy: Option<String>,
    /// How closely to keep to its paper.
    pub variant: Option<Variant>,
    /// The names of policies that watch and do not act.
    pub shadow: Vec<String>,
    /// Nothing is written.
    pub dry_run: bool,
    /// Labels that a container must have to be managed, beside the one that opts it in.
    pub with_label: Vec<String>,
    /// What limits are written by.
    pub actuator: Option<Means>,
    /// What is done where somebody else has changed a limit.
    pub on_drift: Option<OnDrift>,
    /// Whose containers are managed, too.
    pub adopt: Vec<Owner>,
    /// What the machine's CPUs are split into: a set of CPUs by each node's name.
    pub nodes: BTreeMap<String, Cpuset>,
    /// How jobs are moved from one node to another.
    pub migration: migrate::Settings,
    /// The folder of original limits and of the audit log.
    pub state_dir: Option<PathBuf>,
    /// The control socket's path, or `none`.
    pub control: Option<PathBuf>,
    /// How much is logged.
    pub log_level: Option<Filter>,
    /// In which form.
    pub log_format: Option<Format>,
    /// The policy's parameters.
    pub params: BTreeMap<String, f64>,
    /// What stands below the policy.
    pub limiter: LimiterOptions,
    /// Where the page, the API and the metrics are served.
    pub web: web::Settings,
}

/// A file that cannot be used: not TOML, a key that there is not, or a value that is not allowed.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ConfigError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub problem: String,
}

impl Config {
    /// Reads a TOML file. Paths in it that are not absolute are meant from its folder.
    pub fn read(path: &Path) -> Result<Self, BadUsage> {
        let at = |error: &dyn std::fmt::Display| BadUsage(format!("{}: {error}", path.display()));
        let text = fs::read_to_string(path).map_err(|error| at(&error))?;
        let mut config = Self::parse(&text).map_err(|error| at(&error))?;
        let folder = std::path::absolute(path).map_err(|error| at(&error))?;
        config.paths_are_from(folder.parent().unwrap_or(Path::new("/")));
        Ok(config)
    }

    /// Reads the text of a TOML file.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(|error| {
            let (line, problem) = toml_error::explain(text, &error);
            let wrong = text.lines().nth(line - 1).unwrap_or_default().trim();
            // A key that is not known is named already.
            let problem = if problem.starts_with("unknown field") || wrong.is_empty() {
                problem
            } else {
                let shown: String = wrong.chars().take(SHOWN).collect();
                format!("{shown}: {problem}")
            };
            ConfigError { line, problem }
        })
    }

    fn paths_are_from(&mut self, folder: &Path) {
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
    use proptest::prelude::*;

    use super::*;

    fn error(text: &str) -> String {
        Config::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_whole_file_is_read() {
        let text = "policy = \"tradl\"\nvariant = \"published\"\n[params]\nalpha = 0.8\nhold = 4\n";
        let config = Config::parse(text).unwrap();
        assert_eq!(config.policy.as_deref(), Some("tradl"));
        assert_eq!(config.variant, Some(Variant::Published));
        assert_eq!(config.params.get("hold"), Some(&4.0));
        assert_eq!(Config::parse("").unwrap(), Config::default());
    }

    #[test]
    fn an_unknown_key_is_an_error_that_suggests_the_nearest() {
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
    fn a_bad_value_is_named_with_its_line_its_key_and_what_is_allowed() {
        for (text, parts) in [
            ("[params]\nalpha = \"much\"", &["line 2: alpha = \"much\": ", "string \"much\""][..]),
            ("variant = \"exact\"", &["line 1: variant = \"exact\"", "resolved or published"]),
            ("actuator = \"hand\"", &["line 1: actuator = \"hand\"", "`engine` or `cgroup`"]),
            ("on_drift = \"panic\"", &["on_drift", "`reassert` or `yield`"]),
            ("adopt = [\"nomad\"]", &["adopt", "`swarm`, `kubernetes`, `compose`"]),
            ("log_level = \"loud\"", &["log_level = \"loud\"", "debug", "MODULE=LEVEL"]),
            ("log_format = \"xml\"", &["log_format", "`text` or `json`"]),
            ("\n[web]\nlisten = \"7224\"", &["line 3: listen = \"7224\"", "unix:/path.sock"]),
            ("[limiter]\nenforcement = \"hope\"", &["line 2", "quota, shares or quota+leftover"]),
            ("[nodes]\na = \"x\"", &["line 2: a = \"x\"", "no set of CPUs"]),
            ("[migration]\nby = \"magic\"", &["line 2", "`restart` or `cpuset`"]),
            ("policy = ", &["line 1: policy ="]),
        ] {
            let error = error(text);
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn paths_are_meant_from_the_files_folder() {
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
        assert!(missing.starts_with("/no/such.toml: "), "{missing}");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in ".*") {
            drop(Config::parse(&text));
        }
    }
}
