//! What would be reported of a log.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::Failure;
use super::args::JobArgs;
use crate::desk::{Desk, Entry, Kind};
use crate::grammar::{Detector, Reader};
use crate::observation::Observation;

/// The arguments of `replay`.
#[derive(Clone, Debug, Args)]
pub(super) struct ReplayArgs {
    /// The log; standard input without one
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// JSON, a line for each report
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    job: JobArgs,
}

/// Prints reports as they would be made, and what the log was read as.
pub(super) fn run(args: &ReplayArgs) -> Result<ExitCode, Failure> {
    let mut reader = Reader::new(Detector::new(args.job.patterns()?));
    let mut desk = Desk::new(args.job.hints());
    let source = desk.add(Kind::Text);
    let mut input: Box<dyn Read> = match &args.file {
        Some(path) => Box::new(
            File::open(path)
                .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?,
        ),
        None => Box::new(io::stdin()),
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let mut printed = Ok(());
    // Times are not those of the run: nothing is inferred from them.
    let mut print = |desk: &mut Desk, observation: &Observation| {
        let mut entries = Vec::new();
        desk.take(source, observation, 0.0, |entry| entries.push(entry));
        if printed.is_ok() && !entries.is_empty() {
            printed = if args.json {
                writeln!(out, "{}", as_json(&entries))
            } else {
                writeln!(out, "{}", as_text(&entries))
            };
        }
    };
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = input.read(&mut buffer).map_err(|error| Failure::running(error.to_string()))?;
        if read == 0 {
            break;
        }
        reader.feed(buffer.get(..read).unwrap_or_default(), &mut |one| print(&mut desk, one));
    }
    reader.finish(&mut |one| print(&mut desk, one));
    let detector = reader.detector();
    let (counts, matched) = (detector.counts(), detector.matched());
    if printed.is_ok() && !args.json {
        printed = match matched {
            Some(matched) => writeln!(
                out,
                "read as {}, confidence {:.2}: {} lines, {} of them with a new loss",
                matched.name, matched.confidence, counts.lines, counts.losses
            ),
            None => writeln!(out, "no line with a loss was recognised, of {}", counts.lines),
        };
    }
    match printed.and_then(|()| out.flush()) {
        // Whoever reads this has seen enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::running(error.to_string()))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn as_text(entries: &[Entry]) -> String {
    let words = entries.iter().map(|entry| match entry {
        Entry::Loss(loss) => format!("loss {loss}"),
        Entry::Validation(loss) => format!("validation loss {loss}"),
        Entry::Batch(seconds) => format!("batch {seconds:.6} s"),
        Entry::Step(step) => format!("step {step}"),
        Entry::Epoch(epoch) => format!("epoch {epoch}"),
        Entry::TotalSteps(Some(steps)) => format!("of {steps} steps"),
        Entry::TotalSteps(None) => "of an unknown number of steps".to_owned(),
        Entry::ExpectedSteps(steps) => format!("{steps} steps expected"),
    });
    words.collect::<Vec<_>>().join(", ")
}

fn as_json(entries: &[Entry]) -> serde_json::Value {
    let fields = entries.iter().map(|entry| match *entry {
        // JSON has no NaN: as a string it stays visible.
        Entry::Loss(loss) if !loss.is_finite() => ("loss", json!(loss.to_string())),
        Entry::Loss(loss) => ("loss", json!(loss)),
        Entry::Validation(loss) if !loss.is_finite() => ("val_loss", json!(loss.to_string())),
        Entry::Validation(loss) => ("val_loss", json!(loss)),
        Entry::Batch(seconds) => ("batch_seconds", json!(seconds)),
        Entry::Step(step) => ("step", json!(step)),
        Entry::Epoch(epoch) => ("epoch", json!(epoch)),
        Entry::TotalSteps(steps) => ("total_steps", json!(steps)),
        Entry::ExpectedSteps(steps) => ("expected_steps", json!(steps)),
    });
    fields.map(|(name, value)| (name.to_owned(), value)).collect::<serde_json::Map<_, _>>().into()
}
