//! `paceline inject`: puts the sidecar into manifests of Kubernetes, or takes it out.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Args, builder::TypedValueParser};
use paceline_api::bounded;
use paceline_api::plain;
use paceline_api::usage::BadUsage;
use paceline_inject::{Action, ENABLE, Options, Outcome, PullPolicy};

use crate::log::Log;

/// Put the sidecar into Kubernetes manifests, or take it out
///
/// Changes the pods with the label paceline.dev/enable: "true", and nothing else: all other lines
/// stay as they are. The job's command runs under the sidecar, which an init container installs.
/// Where the annotations paceline.dev/log, paceline.dev/tfevents or paceline.dev/csv name files, a
/// sidecar beside the job reads them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  paceline inject -f train.yaml | kubectl apply -f -
  helm template chart | paceline inject | kubectl diff -f -
  paceline inject -f train.yaml --image registry.example/paceline/sidecar:0.1.0 -o new.yaml
  paceline inject --remove -f new.yaml

Kinds: Pod, Job, CronJob, Deployment, StatefulSet, DaemonSet, ReplicaSet, ReplicationController,
PodTemplate, List; JobSet; Kubeflow's TrainJob, TrainingRuntime, ClusterTrainingRuntime, PyTorchJob,
TFJob, MPIJob, XGBoostJob, JAXJob and PaddleJob. A labelled pod of another kind is named.

Annotations of the pod, each optional and a string in quotes: paceline.dev/job, acceptable,
objective, direction, batch-latency, endpoint, loss, pattern, batch-size, total-steps,
expected-steps; container, if the pod has several.

It is a kustomize function as well: a ResourceList is answered by one, with results.

Exit codes: 0 done, 1 failed, 2 a pod that cannot be injected; then nothing is printed.")]
pub(super) struct InjectArgs {
    /// A file of manifests, YAML or JSON; several are joined; `-` is standard input [default: -]
    #[arg(short, long = "filename", value_name = "FILE")]
    file: Vec<PathBuf>,

    /// Take the sidecar out again
    #[arg(long)]
    remove: bool,

    /// The sidecar's image
    #[arg(long, value_name = "IMAGE", default_value_t = Options::default().image, value_parser = image())]
    image: String,

    /// When a node fetches the image
    #[arg(long, value_name = "POLICY", default_value = PullPolicy::default().as_str(), value_parser = policy())]
    pull_policy: PullPolicy,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Do not print what was done on standard error
    #[arg(short, long)]
    quiet: bool,
}

fn policy() -> impl TypedValueParser<Value = PullPolicy> {
    let names = PossibleValuesParser::new(PullPolicy::ALL.map(PullPolicy::as_str));
    names.map(|name| {
        let policy = PullPolicy::ALL.into_iter().find(|policy| policy.as_str() == name);
        policy.unwrap_or_default()
    })
}

fn image() -> impl TypedValueParser<Value = String> {
    clap::builder::NonEmptyStringValueParser::new().try_map(|image| {
        let is_plain = image.chars().all(|c| c.is_ascii_graphic());
        if is_plain {
            Ok(image)
        } else {
            Err("expected an image, for example paceline/sidecar:0.1.0")
        }
    })
}

pub(super) fn run(args: &InjectArgs, log: &Log) -> anyhow::Result<ExitCode> {
    let options = Options { image: args.image.clone(), pull_policy: args.pull_policy };
    let action = if args.remove { Action::Remove } else { Action::Inject };
    let standard_input = [PathBuf::from("-")];
    let files = if args.file.is_empty() { &standard_input } else { args.file.as_slice() };
    let mut outcomes = Vec::with_capacity(files.len());
    let mut errors = Vec::new();
    for path in files {
        let text = read(path)?;
        match paceline_inject::transform(&text, action, &options) {
            Ok(outcome) => outcomes.push(outcome),
            Err(error) => {
                // A kustomize function answers with its errors.
                if let Some(answer) = paceline_inject::failed_function(&text, &error) {
                    plain::print(&answer)?;
                }
                let lines = error.to_string();
                errors.extend(lines.lines().map(|line| named(path, line)));
            }
        }
    }
    if !errors.is_empty() {
        return Err(BadUsage(errors.join("\n")).into());
    }
    if !args.quiet {
        report(files, &outcomes, action, log);
    }
    let text = join(&outcomes);
    match &args.output {
        Some(path) => fs::write(path, text).map_err(|error| {
            anyhow::anyhow!("cannot write {}: {error}; name another file", path.display())
        })?,
        None => plain::print(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn read(path: &Path) -> Result<String, BadUsage> {
    if !is_standard_input(path) {
        return bounded::MANIFESTS.read(path).map_err(|error| {
            BadUsage(format!("cannot read {}: {error}; name a file of manifests", path.display()))
        });
    }
    let input = io::stdin();
    if input.is_terminal() {
        let usage = "no manifest is given; name one by -f FILE, or pipe one in";
        return Err(BadUsage(usage.to_owned()));
    }
    bounded::MANIFESTS.read_from(input.lock()).map_err(|error| {
        BadUsage(format!("cannot read standard input: {error}; pipe a manifest in"))
    })
}

/// A line about a file, which is named unless it is the standard input.
fn named(path: &Path, line: &str) -> String {
    if is_standard_input(path) { line.to_owned() } else { format!("{}: {line}", path.display()) }
}

/// Prints what was done.
fn report(files: &[PathBuf], outcomes: &[Outcome], action: Action, log: &Log) {
    let (mut changes, mut is_explained) = (0_usize, false);
    for (path, outcome) in files.iter().zip(outcomes) {
        for note in &outcome.notes {
            changes += usize::from(note.is_change());
            is_explained |= note.is_reason();
            log.print(&format!("paceline: {}\n", plain::plain(&named(path, &note.to_string()))));
        }
    }
    if changes == 0 {
        let nothing = match action {
            Action::Inject if is_explained => "no pod was injected".to_owned(),
            Action::Inject => format!("no pod was injected; label its template {ENABLE}: \"true\""),
            Action::Remove => "no pod was injected before, so nothing is removed".to_owned(),
        };
        log.print(&format!("paceline: {nothing}\n"));
    }
}

/// All texts as one stream.
fn join(outcomes: &[Outcome]) -> String {
    let mut all = String::new();
    for Outcome { text, .. } in outcomes {
        // A byte order mark belongs to the start of a text.
        let text = if all.is_empty() { text } else { text.trim_start_matches('\u{feff}') };
        if !all.is_empty() {
            all.push_str(if all.ends_with('\n') { "" } else { "\n" });
            all.push_str(if text.starts_with("---") { "" } else { "---\n" });
        }
        all.push_str(text);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_joined_as_documents() {
        let texts = ["a: 1", "---\nb: 2\n", "c: 3\n"];
        let outcome = |text: &str| Outcome { text: text.to_owned(), notes: vec![] };
        let all = join(&texts.map(outcome));
        assert_eq!(all, "a: 1\n---\nb: 2\n---\nc: 3\n");
        assert_eq!(join(&[outcome("a: 1")]), "a: 1");
        let marked = join(&["\u{feff}a: 1\n", "\u{feff}b: 2\n"].map(outcome));
        assert_eq!(marked, "\u{feff}a: 1\n---\nb: 2\n");
    }
}
