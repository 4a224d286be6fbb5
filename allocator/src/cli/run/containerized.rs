//! The command line of the same run in a container of its own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context;
use paceline_server::web::{Address, Export};

use super::super::containerized::ContainerizedRun;
use super::settings::Settings;
use super::{Place, RunArgs};
use crate::log::Given;

impl RunArgs {
    /// The same arguments for a process that ends with this one. Values of the configuration
    /// file are left out: the process reads the file itself, also on a reload, and arguments
    /// would override it. `settings` give the folders that the process needs.
    pub(super) fn containerized(
        &self,
        settings: &Settings,
        log: &Given,
    ) -> anyhow::Result<ContainerizedRun> {
        let command = if self.place == Place::Swarm { "agent" } else { "run" };
        let mut arguments = vec![command.to_owned(), "--until-stdin-closes".to_owned()];
        let mut add = |name: &str, value: String| arguments.extend([format!("--{name}"), value]);
        let policy = &self.policy;
        for (name, value) in [
            ("policy", policy.policy.clone()),
            ("variant", policy.variant.map(|variant| variant.to_string())),
            ("enforcement", policy.enforcement.map(|enforcement| enforcement.to_string())),
        ] {
            if let Some(value) = value {
                add(name, value);
            }
        }
        for param in &policy.params {
            add("param", format!("{}={}", param.name, param.value));
        }
        self.shadow.iter().for_each(|name| add("shadow", name.clone()));
        self.with_label.iter().for_each(|label| add("with-label", label.clone()));
        match self.control.given() {
            // The default socket is in the container, and is used from there.
            Some(_) if self.control.is_default() => {}
            Some(path) if path.as_os_str() == "none" => add("control", "none".to_owned()),
            Some(path) => add("control", absolute(path)?),
            None => {}
        }
        match &self.web.listen {
            Some(Address::Unix(path)) => add("listen", format!("unix:{}", absolute(path)?)),
            Some(address) => add("listen", address.to_string()),
            None => {}
        }
        for (name, file) in [
            ("record", &self.record),
            ("samples", &self.samples),
            ("token-file", &self.web.token_file),
            ("tls-certificate", &self.web.tls_certificate),
            ("tls-key", &self.web.tls_key),
            ("config", &policy.config),
        ] {
            if let Some(file) = file {
                add(name, absolute(file)?);
            }
        }
        add("state-dir", absolute(&settings.fixed.state.folder())?);
        arguments.extend(self.actuator.arguments());
        arguments.extend(self.node.arguments());
        arguments.extend(log.arguments());
        for (name, is_given) in [("--dry-run", self.dry_run), ("--otlp", self.web.otlp)] {
            if is_given {
                arguments.push(name.to_owned());
            }
        }
        let (folders, otlp) = (self.folders(settings)?, settings.fixed.web.otlp);
        Ok(ContainerizedRun { arguments, folders, locks: true, otlp })
    }

    /// The folders of every file that the run reads or creates.
    fn folders(&self, settings: &Settings) -> anyhow::Result<Vec<PathBuf>> {
        let fixed = &settings.fixed;
        let socket = fixed.control.socket().filter(|_| !fixed.control.is_default());
        let page = match &fixed.web.listen {
            Some(Address::Unix(path)) => Some(path.clone()),
            Some(Address::Tcp(_) | Address::None) | None => None,
        };
        let web = [&fixed.web.token_file, &fixed.web.tls_certificate, &fixed.web.tls_key];
        let own = [&self.record, &self.samples, &self.policy.config];
        let otlp = if fixed.web.otlp { Export::files() } else { Vec::new() };
        let files = own.into_iter().chain(web).flatten().cloned().chain(socket).chain(page);
        let files = files.chain(otlp);
        let mut folders = BTreeSet::from([std::path::absolute(fixed.state.folder())?]);
        for file in files {
            folders.extend(std::path::absolute(file)?.parent().map(Path::to_owned));
        }
        Ok(folders.into_iter().collect())
    }
}

/// An absolute path, for another process.
pub(in crate::cli) fn absolute(path: &Path) -> anyhow::Result<String> {
    let path = std::path::absolute(path)?;
    path.into_os_string().into_string().ok().context("invalid path: expected UTF-8")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::log::LogArgs;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        run: RunArgs,

        #[command(flatten)]
        log: LogArgs,
    }

    /// The containerized command of a command line, and its arguments parsed again.
    fn containerized(line: &str) -> (RunArgs, ContainerizedRun, RunArgs) {
        let Line { run, log } = Line::try_parse_from(line.split_whitespace()).unwrap();
        let given = Given { level: None, format: log.log_format };
        let command = run.containerized(&run.settings(&given).unwrap(), &given).unwrap();
        let made = Line::try_parse_from(&command.arguments).unwrap();
        assert_eq!(made.log, log);
        (run, command, made.run)
    }

    #[test]
    fn arguments_are_passed_on_unchanged() {
        let (given, command, made) = containerized(
            "run --policy flowcon --variant published --enforcement quota --shadow tradl,dqoes \
             --param alpha=0.05 --param beta=2 --with-label a=b --record /tmp/frames \
             --samples /tmp/samples --listen 127.0.0.1:7225 --token-file /tmp/token \
             --state-dir /tmp/state --control /tmp/control.sock --log-format json \
             --actuator cgroup --on-drift yield --adopt swarm,compose --dry-run --otlp \
             --migration cpuset --move-within 2.5 --moves 3 --until-stdin-closes",
        );
        assert_eq!(command.folders, [Path::new("/tmp"), Path::new("/tmp/state")]);
        assert_eq!(made, given);
    }

    #[test]
    fn nodes_are_passed_on() {
        let (given, _, made) =
            containerized("run --policy specon --node a=0,2-3 --node b=1 --until-stdin-closes");
        assert_eq!((made.node.clone(), made.node.nodes.len()), (given.node, 2));
    }

    #[test]
    fn file_settings_are_left_out_but_their_folders_passed_on() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("etc/paceline.toml");
        std::fs::create_dir(folder.path().join("etc")).unwrap();
        std::fs::write(
            &file,
            "policy = 'tradl'\nstate_dir = '../state'\ncontrol = '/run/here/c'\n\
             [params]\nhold = 4\n[web]\nlisten = 'unix:/run/there/w'\ntoken_file = 'secret/token'",
        )
        .unwrap();
        let line = format!("run --config {} --until-stdin-closes", file.display());
        let (given, command, made) = containerized(&line);
        let state = folder.path().join("etc/../state");
        assert_eq!(made, RunArgs { state: made.state.clone(), ..given });
        assert_eq!(made.state.state_dir, Some(state.clone()));
        let etc = folder.path().join("etc");
        let (secret, run) = (etc.join("secret"), |name| Path::new("/run").join(name));
        let expected = BTreeSet::from([etc, state, secret, run("here"), run("there")]);
        assert_eq!(command.folders.into_iter().collect::<BTreeSet<_>>(), expected);
    }
}
