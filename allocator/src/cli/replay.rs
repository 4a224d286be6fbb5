//! `paceline replay`: recorded frames in, decisions out.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use paceline_policy::PerJob;
use paceline_policy::limiter::{Effective, Limiter, LimiterSettings};
use paceline_policy::replay::{Answer, Replay};
use serde::Serialize;

use super::policy_args::PolicyArgs;
use crate::exit::BadUsage;

/// Run a policy over recorded frames, and print one decision for each
///
/// `paceline run --record FILE` writes frames. The policy is the very code that runs live: replaying
/// what a run recorded gives that run's decisions.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  paceline replay --policy flowcon frames.jsonl
  paceline replay --policy tradl --variant published --explain frames.jsonl
  paceline replay --policy dqoes --param alpha=0.2 < frames.jsonl | jq .limits

A malformed line ends the replay with exit code 2 and the line's number.")]
pub(super) struct ReplayArgs {
    #[command(flatten)]
    policy: PolicyArgs,

    /// Print each decision as sentences
    #[arg(long)]
    explain: bool,

    /// Print what the limiter makes of each decision, too: `effective`, with a reason for each job
    #[arg(long)]
    effective: bool,

    /// Frames, one JSON object a line [default: standard input]
    frames: Option<PathBuf>,
}

pub(super) fn run(args: &ReplayArgs) -> anyhow::Result<ExitCode> {
    let chosen = args.policy.chosen()?;
    let mut replay = Replay::new(chosen.build()?);
    let mut limited = args.effective.then_some(Limited { settings: chosen.limiter, limiter: None });
    let frames = open(args.frames.as_deref())?;
    let mut out = BufWriter::new(io::stdout().lock());
    for (number, line) in (1_u64..).zip(frames.lines()) {
        let answer = line.map_err(|error| bad_line(number, &error));
        let answer =
            answer.and_then(|line| replay.line(&line).map_err(|error| bad_line(number, &error)));
        let Some(answer) = answer.inspect_err(|_| drop(out.flush()))? else { continue };
        let effective =
            limited.as_mut().map(|limited| limited.judge(&answer)).transpose()?.flatten();
        let written = if args.explain {
            write!(out, "{answer}").and_then(|()| explain(&mut out, effective.as_ref()))
        } else {
            let line = Line { answer: &answer, effective: effective.as_ref() };
            writeln!(out, "{}", serde_json::to_string(&line)?)
        };
        match written {
            // Whoever reads has read enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(ExitCode::SUCCESS);
            }
            written => written?,
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

type Effects = PerJob<Effective>;

/// A decision, and what the limiter makes of it.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    answer: &'a Answer,
    #[serde(skip_serializing_if = "Option::is_none")]
    effective: Option<&'a Effects>,
}

/// The limiter beside a replay: that of a node with as many CPUs as the first frame says.
struct Limited {
    settings: LimiterSettings,
    limiter: Option<Limiter>,
}

impl Limited {
    /// What it makes of a policy's limits; a policy that sets none is no business of it.
    fn judge(&mut self, answer: &Answer) -> Result<Option<Effects>, BadUsage> {
        let Answer::Jobs(frame, decision) = answer else { return Ok(None) };
        let limiter = match &mut self.limiter {
            Some(limiter) => limiter,
            none => {
                let cpus = frame.nodes.first().and_then(|node| node.cpus).unwrap_or(1.0);
                let limiter = Limiter::with(cpus, self.settings);
                none.insert(limiter.map_err(|error| BadUsage(error.to_string()))?)
            }
        };
        Ok(Some(limiter.effective(frame, decision)))
    }
}

fn explain(out: &mut impl Write, effective: Option<&Effects>) -> io::Result<()> {
    for (job, Effective { share, why }) in effective.into_iter().flatten() {
        writeln!(out, "  {job} has {share} in effect: {why}")?;
    }
    Ok(())
}

fn open(path: Option<&Path>) -> Result<Box<dyn BufRead>, BadUsage> {
    match path {
        Some(path) => match File::open(path) {
            Ok(file) => Ok(Box::new(BufReader::new(file))),
            Err(error) => Err(BadUsage(format!("{} cannot be read: {error}", path.display()))),
        },
        None => Ok(Box::new(BufReader::new(io::stdin()))),
    }
}

fn bad_line(number: u64, error: &dyn std::error::Error) -> BadUsage {
    BadUsage(format!("line {number}: {}", in_one_line(error)))
}

/// An error and its causes in one line, whatever they say over how many.
pub(super) fn in_one_line(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| (*error).source());
    let text = causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"));
    text.replace('\n', " ")
}
