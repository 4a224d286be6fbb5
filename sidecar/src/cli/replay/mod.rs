//! `replay`: prints what would be reported for a log, and why.

mod explained;
mod form;
mod suggested;

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use paceline_grammar::{Detector, Reader};
use paceline_lines::observation::Observation;

use super::args::JobArgs;
use super::{Failure, values};
use crate::merger::{Kind, Merger};

/// Bytes of a read.
const CHUNK: usize = 64 * 1024;

pub(super) const EXAMPLES: &str = "\
Examples:
  paceline-sidecar replay train.log                     what would be reported
  paceline-sidecar replay --explain train.log           what each line was read as, and why
  paceline-sidecar replay --suggest train.log           a --pattern for lines that nothing reads
  paceline-sidecar replay --pattern 'obj=(?P<loss>[-.\\d]+)' train.log
  zcat train.log.gz | paceline-sidecar replay --json -";

/// The arguments of `replay`.
#[derive(Clone, Debug, Args)]
pub(super) struct ReplayArgs {
    /// The log; `-` is standard input, also the default
    #[arg(value_name = "FILE", value_parser = values::path())]
    file: Option<PathBuf>,
    /// Print one JSON object per report or, with --explain, per line
    #[arg(long)]
    json: bool,
    /// Print what each line was read as and why, and which of its numbers were not taken
    #[arg(long)]
    explain: bool,
    /// Print a --pattern for lines that look like reports and that nothing reads
    #[arg(long, conflicts_with_all = ["json", "explain"])]
    suggest: bool,
    #[command(flatten)]
    job: JobArgs,
}

/// Prints the reports of a log, and the grammar that was recognised.
pub(super) fn run(args: &ReplayArgs) -> Result<ExitCode, Failure> {
    let mut reader = Reader::new(Detector::new(args.job.patterns()?));
    let file = args.file.as_ref().filter(|path| path.as_os_str() != "-");
    let input: Box<dyn Read> = match file {
        Some(path) => {
            let unusable = |why: &dyn Display| {
                Failure::usage(format!("cannot read {}: {why}; name a log", path.display()))
            };
            if path.is_dir() {
                return Err(unusable(&"it is a folder"));
            }
            Box::new(File::open(path).map_err(|error| unusable(&error))?)
        }
        None => Box::new(io::stdin()),
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let merger = Merger::new(args.job.hints());
    let printed = if args.suggest {
        suggested::print(input, &mut reader, &mut out)
    } else if args.explain {
        explained::print(input, &mut reader, merger, &mut out, args.json)
    } else {
        print(input, &mut reader, merger, &mut out, args.json)
    };
    let ends_with_summary = !args.json && !args.suggest;
    let printed = printed.and_then(|()| {
        if ends_with_summary {
            summary(&reader, &mut out)?;
        }
        out.flush().map_err(Problem::Write)
    });
    match printed {
        // The reader of the output may close it early.
        Err(Problem::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            Ok(ExitCode::SUCCESS)
        }
        Err(problem) => Err(Failure::running(problem.to_string())),
        Ok(()) => Ok(ExitCode::SUCCESS),
    }
}

/// Why a replay has failed.
#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("cannot read the log: {0}")]
    Read(io::Error),
    #[error("cannot write the reports: {0}")]
    Write(io::Error),
}

/// Prints the reports.
fn print(
    input: impl Read,
    reader: &mut Reader,
    mut merger: Merger,
    out: &mut impl Write,
    json: bool,
) -> Result<(), Problem> {
    let source = merger.add(Kind::Text);
    for_each_read(input, reader, Pieces::Chunks, |_, _, found| {
        for one in found {
            let mut entries = Vec::new();
            // The times are not those of the run, so no latency is inferred from them.
            merger.take(source, &one, 0.0, |entry| entries.push(entry));
            if !entries.is_empty() {
                let text =
                    if json { form::json(&entries).to_string() } else { form::text(&entries) };
                writeln!(out, "{text}")?;
            }
        }
        Ok(())
    })
}

/// How a log is cut for its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pieces {
    /// As it is read.
    Chunks,
    /// By its lines.
    Lines,
}

/// Reads a log to its end. `take` gets each piece and the observations in it; the last piece is
/// empty.
fn for_each_read(
    mut input: impl Read,
    reader: &mut Reader,
    pieces: Pieces,
    mut take: impl FnMut(&mut Reader, &[u8], Vec<Observation>) -> io::Result<()>,
) -> Result<(), Problem> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = match input.read(&mut buffer) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Problem::Read(error)),
        };
        let chunk = buffer.get(..read).unwrap_or_default();
        let is_end = |byte: &u8| *byte == b'\n' && pieces == Pieces::Lines;
        for piece in chunk.split_inclusive(is_end) {
            let mut found = Vec::new();
            reader.feed(piece, &mut |one: &Observation| found.push(one.clone()));
            take(reader, piece, found).map_err(Problem::Write)?;
        }
        if read == 0 {
            let mut found = Vec::new();
            reader.finish(&mut |one: &Observation| found.push(one.clone()));
            return take(reader, &[], found).map_err(Problem::Write);
        }
    }
}

/// Prints the grammar that was recognised.
fn summary(reader: &Reader, out: &mut impl Write) -> Result<(), Problem> {
    let detector = reader.detector();
    let (counts, matched) = (detector.counts(), detector.matched());
    let printed = match matched {
        Some(matched) => writeln!(
            out,
            "read as {}, confidence {:.2}: {} lines, {} of them with a new loss",
            matched.name, matched.confidence, counts.lines, counts.losses
        ),
        None if counts.lines == 0 => writeln!(out, "no loss was recognised: the log is empty"),
        None => writeln!(
            out,
            "no loss was recognised in {} lines; try replay --suggest, or replay --explain",
            counts.lines
        ),
    };
    printed.map_err(Problem::Write)
}
