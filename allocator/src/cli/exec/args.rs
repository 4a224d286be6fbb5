//! The command line of `paceline exec`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use clap::{Args, ValueEnum};
use paceline_api::labels::{ENABLE, JOB, LabelError};
use paceline_api::plain;

/// Run a job outside containers, so that the allocator can manage it
///
/// The command runs in a control group of its own, with the sidecar around it. Exit code, signals,
/// terminal and working directory stay those of the command. Where no control group can be made, one
/// line says what is missing, and the command runs without one.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paceline exec -- python train.py
  paceline exec --job vae --acceptable 120 --objective 110 -- python train.py
  paceline exec --sidecar none -- ./train      a job that embeds the reporter
  paceline run --runtime processes             then manages all of them; as a user with --user

Exit codes: the command's own, 128 + n for signal n; 125 if it could not be prepared, 126 if it
cannot be run, 127 if it is missing.")]
pub(in crate::cli) struct ExecArgs {
    /// The job's name [default: that of the script or program]
    #[arg(long, value_name = "NAME")]
    pub(super) job: Option<String>,

    /// The loss at which the model becomes usable
    #[arg(long, value_name = "LOSS", allow_hyphen_values = true)]
    pub(super) acceptable: Option<String>,

    /// The loss at which the job is done
    #[arg(long, value_name = "LOSS", allow_hyphen_values = true)]
    pub(super) objective: Option<String>,

    /// The target duration of a batch, in seconds
    #[arg(long, value_name = "SECONDS")]
    pub(super) batch_latency: Option<String>,

    /// Whether a lower or a higher loss is better
    #[arg(long, value_enum)]
    pub(super) direction: Option<Way>,

    /// The job's weight relative to others; 1 by default
    #[arg(long, value_name = "NUMBER")]
    weight: Option<String>,

    /// The fewest CPUs that the job is given
    #[arg(long, value_name = "CPUS")]
    min_cpus: Option<String>,

    /// The most CPUs that the job is given
    #[arg(long, value_name = "CPUS")]
    max_cpus: Option<String>,

    /// The largest factor by which it may be slower than under equal sharing
    #[arg(long, value_name = "FACTOR")]
    max_slowdown: Option<String>,

    /// A further label, for `paceline run --with-label`. Repeat the option for several labels
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    label: Vec<(String, String)>,

    /// It may be ended at its objective
    #[arg(long)]
    terminate: bool,

    /// Whether the sidecar reads the command's output, where it is installed. `none` is for a job that
    /// embeds the reporter
    #[arg(long, value_enum, default_value_t = Sidecar::Auto)]
    pub(super) sidecar: Sidecar,

    /// Use the machine's systemd instead of the user's; needs root
    #[arg(long, conflicts_with = "user")]
    pub(super) system: bool,

    /// The command, after `--`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

/// Whether a lower or a higher loss is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Way {
    Minimize,
    Maximize,
}

/// Whether a sidecar reads the command's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Sidecar {
    Auto,
    None,
}

impl ExecArgs {
    /// The job's name: the given one, else that of a Python script, else that of the program.
    pub(super) fn name(&self) -> String {
        let stem = |word: &OsString| {
            Path::new(word).file_stem().map(|stem| plain::name(&stem.to_string_lossy()))
        };
        let script =
            self.command.iter().skip(1).find(|word| {
                Path::new(word).extension().is_some_and(|extension| extension == "py")
            });
        let own = || script.or(self.command.first()).and_then(stem);
        self.job.clone().or_else(own).unwrap_or_else(|| "job".to_owned())
    }

    /// An error about the labels, with the names of the options that gave them.
    pub(super) fn in_own_words(&self, error: &LabelError) -> String {
        let is_option = |label: &&str| self.label.iter().all(|(key, _)| key != label);
        if error.labels().iter().all(is_option) { error.of_options() } else { error.to_string() }
    }

    /// The settings as a container has them in its labels.
    pub(super) fn labels(&self, name: &str) -> BTreeMap<String, String> {
        let direction = self.direction.map(|way| way.word().to_owned());
        let given = [
            ("acceptable", &self.acceptable),
            ("objective", &self.objective),
            ("batch-latency", &self.batch_latency),
            ("direction", &direction),
            ("weight", &self.weight),
            ("min-cpus", &self.min_cpus),
            ("max-cpus", &self.max_cpus),
            ("max-slowdown", &self.max_slowdown),
        ];
        let mut labels: BTreeMap<String, String> = given
            .into_iter()
            .filter_map(|(key, value)| Some((format!("paceline.{key}"), value.clone()?)))
            .collect();
        labels.extend(self.label.iter().cloned());
        labels.insert(ENABLE.to_owned(), "true".to_owned());
        labels.insert(JOB.to_owned(), name.to_owned());
        if self.terminate {
            labels.insert("paceline.terminate".to_owned(), "true".to_owned());
        }
        labels
    }
}

/// A label of the command line.
fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .filter(|(key, _)| !key.is_empty())
        .ok_or_else(|| "expected KEY=VALUE, for example team=vision".to_owned())?;
    Ok((key.to_owned(), value.to_owned()))
}

impl Way {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Minimize => "minimize",
            Self::Maximize => "maximize",
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use paceline_api::labels::Labels;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        /// As the command line has it for all commands.
        #[arg(long)]
        user: bool,
        #[command(flatten)]
        exec: ExecArgs,
    }

    fn parsed(line: &str) -> ExecArgs {
        let words = std::iter::once("exec").chain(line.split_whitespace());
        Line::try_parse_from(words).unwrap().exec
    }

    #[test]
    fn job_is_called_like_its_script_or_program() {
        for (line, name) in [
            ("-- python train.py --epochs 3", "train"),
            ("-- /usr/bin/python3 -u src/vae.py", "vae"),
            ("-- ./resnet50", "resnet50"),
            ("--job mine -- python train.py", "mine"),
        ] {
            assert_eq!(parsed(line).name(), name, "{line}");
        }
    }

    #[test]
    fn options_become_the_labels_of_a_container() {
        let args = parsed(
            "--label team=vision --acceptable -1.5 --objective -2 --max-cpus 1.5 --weight 2 --terminate -- a",
        );
        assert_eq!(args.labels("a").get("team").map(String::as_str), Some("vision"));
        let labels = Labels::parse(&args.labels("a")).unwrap();
        assert_eq!(labels.targets.acceptable, Some(-1.5));
        assert_eq!(labels.max_cpus, Some(1.5));
        assert!(labels.terminate && labels.job.as_deref() == Some("a"));
        let invalid = parsed("--weight 0 -- a");
        Labels::parse(&invalid.labels("a")).unwrap_err();
    }

    #[test]
    fn command_keeps_its_own_options() {
        let args = parsed("-- sh -c exit --job x");
        assert_eq!(args.command, ["sh", "-c", "exit", "--job", "x"]);
        assert_eq!(args.job, None);
    }
}
