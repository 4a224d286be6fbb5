//! `paceline replay`: runs a policy over recorded frames.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use paceline_api::bounded::{Lines, is_standard_input};
use paceline_api::plain::{plain, plain_json, unprinted};
use paceline_api::usage::{BadUsage, in_one_line};
use paceline_policy::limiter::{Effective, Limiter, LimiterSettings};
use paceline_policy::replay::{Answer, Replay};
use paceline_policy::{JobId, PerJob};
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

    /// Frames, one JSON object per line; `-` is standard input [default: -]
    frames: Option<PathBuf>,
}

/// Where frames come from.
const RECORD: &str =
    "`paceline run --record FILE` and `paceline simulate --record FILE` write them";

pub(super) fn run(args: &ReplayArgs, log: &Log) -> anyhow::Result<ExitCode> {
    if !replay(args, &mut BufWriter::new(io::stdout().lock()))? {
        // A run that ended before its first decision leaves an empty record, so this is not a failure.
        log.print(&format!("paceline: nothing to replay: the input has no frames; {RECORD}\n"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints an answer to each frame, until the reader closes the output. Returns whether there are frames.
fn replay(args: &ReplayArgs, out: &mut impl Write) -> anyhow::Result<bool> {
    match print_answers(args, out) {
        // Errors of the input are errors of usage.
        Err(error) => match error.downcast::<io::Error>() {
            Ok(error) if is_closed(&error) => Ok(true),
            Ok(error) => Err(unprinted(&error).into()),
            Err(error) => Err(error),
        },
        printed => printed,
    }
}

/// Whether the reader has closed the pipe.
fn is_closed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

fn print_answers(args: &ReplayArgs, out: &mut impl Write) -> anyhow::Result<bool> {
    let chosen = args.policy.chosen()?;
    let mut replay = Replay::new(chosen.build()?);
    let mut limited = args.effective.then_some(Limited { settings: chosen.limiter, limiter: None });
    let frames = open(args.frames.as_deref())?;
    let bad_line = |number, error: &dyn std::error::Error| {
        let file = args.frames.as_deref().filter(|path| !is_standard_input(path));
        let file = file.map_or(String::new(), |path| format!("{}: ", path.display()));
        BadUsage(format!("{file}line {number}: {}", in_one_line(error)))
    };
    let mut has_frames = false;
    for (number, line) in (1_u64..).zip(Lines::new(frames)) {
        let answer = line.map_err(|error| bad_line(number, &error));
        let answer = answer.and_then(|line| {
            replay.line(without_mark(number, &line)).map_err(|error| bad_line(number, &error))
        });
        let Some(answer) = answer.inspect_err(|_| drop(out.flush()))? else { continue };
        has_frames = true;
        let effective =
            limited.as_mut().map(|limited| limited.apply(&answer)).transpose()?.flatten();
        if args.explain {
            let effects = effective.as_ref().map(explained).unwrap_or_default();
            for sentence in answer.sentences().iter().chain(&effects) {
                writeln!(out, "{}", plain(sentence))?;
            }
        } else {
            let line = Line { answer: &answer, effective: effective.as_ref() };
            writeln!(out, "{}", plain_json(&serde_json::to_string(&line)?))?;
        }
    }
    out.flush()?;
    Ok(has_frames)
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

/// The limits after the limiter, as sentences.
fn explained(effects: &Effects) -> Vec<String> {
    let sentence = |(job, Effective { share, why }): (&JobId, &Effective)| {
        format!("  {job} has {share} in effect: {why}")
    };
    effects.iter().map(sentence).collect()
}

/// The line without the mark of byte order with which some editors begin a file.
fn without_mark(number: u64, line: &str) -> &str {
    line.strip_prefix('\u{feff}').filter(|_| number == 1).unwrap_or(line)
}

fn open(path: Option<&Path>) -> Result<Box<dyn BufRead>, BadUsage> {
    match path.filter(|path| !is_standard_input(path)) {
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        replay: ReplayArgs,
    }

    /// Replays one frame, whose job has this name in JSON, with one more option.
    fn replayed(name: &str, option: Option<&str>, out: &mut impl Write) -> anyhow::Result<bool> {
        let folder = tempfile::tempdir().unwrap();
        let frames = folder.path().join("frames.jsonl");
        std::fs::write(&frames, format!(r#"{{"t": 1, "jobs": [{{"id": "{name}"}}]}}"#)).unwrap();
        let words = ["replay", "--policy", "flowcon", "--effective"].into_iter();
        let words = words.chain(option).chain(frames.to_str());
        let Command { replay: args } = Command::try_parse_from(words).unwrap();
        replay(&args, out)
    }

    #[test]
    fn names_cannot_control_the_terminal() {
        let name = r"a\u001b[2J\u009b31m\nb";
        for (option, count) in [(Some("--explain"), 3), (None, 1)] {
            let mut out = Vec::new();
            assert!(replayed(name, option, &mut out).unwrap());
            let text = String::from_utf8(out).unwrap();
            assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
            assert_eq!(text.lines().count(), count, "{text}");
        }
    }

    #[test]
    fn mark_of_byte_order_is_no_part_of_the_first_line() {
        assert_eq!(without_mark(1, "\u{feff}{}"), "{}");
        assert_eq!(without_mark(2, "\u{feff}{}"), "\u{feff}{}");
    }

    /// An output that fails.
    struct Failing(io::ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn full_disk_is_reported_with_the_output() {
        let error =
            replayed("a", None, &mut Failing(io::ErrorKind::StorageFull)).unwrap_err().to_string();
        assert!(error.starts_with("cannot write to standard output: "), "{error}");
    }

    #[test]
    fn closed_pipe_ends_a_replay_without_an_error() {
        for option in [Some("--explain"), None] {
            let closed = || Failing(io::ErrorKind::BrokenPipe);
            assert!(replayed("a", option, &mut closed()).unwrap());
            // An answer that fits the buffer is written at the end.
            assert!(replayed("a", option, &mut BufWriter::new(closed())).unwrap());
        }
    }
}
