//! `paceline replay`: runs a policy over recorded frames.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use paceline_api::bounded::Lines;
use paceline_api::usage::BadUsage;
use paceline_api::usage::in_one_line;
use paceline_policy::PerJob;
use paceline_policy::limiter::{Effective, Limiter, LimiterSettings};
use paceline_policy::replay::{Answer, Replay};
use serde::Serialize;

use super::policy_args::PolicyArgs;
use crate::log::Log;

/// Run a policy over recorded frames, and print one decision for each
///
/// `paceline run --record FILE` writes frames. Replay uses the same policy code as a live run, so
/// replaying the frames of a run gives the decisions of that run.
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

    /// Also print the limits after the limiter, as `effective`, with a reason for each job
    #[arg(long)]
    effective: bool,

    /// Frames, one JSON object per line [default: standard input]
    frames: Option<PathBuf>,
}

/// Where frames come from.
const RECORD: &str =
    "`paceline run --record FILE` and `paceline simulate --record FILE` write them";

pub(super) fn run(args: &ReplayArgs, log: &Log) -> anyhow::Result<ExitCode> {
    let chosen = args.policy.chosen()?;
    let mut replay = Replay::new(chosen.build()?);
    let mut limited = args.effective.then_some(Limited { settings: chosen.limiter, limiter: None });
    let frames = open(args.frames.as_deref())?;
    let bad_line = |number, error: &dyn std::error::Error| {
        let file =
            args.frames.as_ref().map_or(String::new(), |path| format!("{}: ", path.display()));
        BadUsage(format!("{file}line {number}: {}", in_one_line(error)))
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let mut has_frames = false;
    for (number, line) in (1_u64..).zip(Lines::new(frames)) {
        let answer = line.map_err(|error| bad_line(number, &error));
        let answer =
            answer.and_then(|line| replay.line(&line).map_err(|error| bad_line(number, &error)));
        let Some(answer) = answer.inspect_err(|_| drop(out.flush()))? else { continue };
        has_frames = true;
        let effective =
            limited.as_mut().map(|limited| limited.apply(&answer)).transpose()?.flatten();
        let written = if args.explain {
            write!(out, "{answer}").and_then(|()| explain(&mut out, effective.as_ref()))
        } else {
            let line = Line { answer: &answer, effective: effective.as_ref() };
            writeln!(out, "{}", serde_json::to_string(&line)?)
        };
        match written {
            // The reader has closed the pipe.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(ExitCode::SUCCESS);
            }
            written => written?,
        }
    }
    out.flush()?;
    if !has_frames {
        // A run that ended before its first decision leaves an empty record, so this is not a failure.
        log.print(&format!("paceline: nothing to replay: the input has no frames; {RECORD}\n"));
    }
    Ok(ExitCode::SUCCESS)
}

type Effects = PerJob<Effective>;

/// A decision, and its limits after the limiter.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    answer: &'a Answer,
    #[serde(skip_serializing_if = "Option::is_none")]
    effective: Option<&'a Effects>,
}

/// The limiter of a replay, for a node with the CPUs of the first frame.
struct Limited {
    settings: LimiterSettings,
    limiter: Option<Limiter>,
}

impl Limited {
    /// The limits after the limiter; `None` for a policy that sets no limits.
    fn apply(&mut self, answer: &Answer) -> Result<Option<Effects>, BadUsage> {
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
            Err(error) => {
                let shown = path.display();
                Err(BadUsage(format!("cannot read the frames {shown}: {error}; {RECORD}")))
            }
        },
        None => Ok(Box::new(BufReader::new(io::stdin()))),
    }
}
