//! `paceline explain JOB`: the last decisions about a job, as sentences from the audit log.

use std::io;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;

use super::control_args::ControlArgs;
use super::figures::moment;
use super::orders::unexpected;
use super::plain::{plain, plain_json, print};
use super::state::StateArgs;
use crate::audit::{Entry, Record, read};
use crate::control::{Reply, Request, Tail};
use crate::exit::BadUsage;

/// Say why a job has the CPU that it has: the last decisions about it, and what came of them
///
/// This is read from the audit log, and needs no running allocator; where the log lies elsewhere,
/// the running allocator is asked for it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  paceline explain vae
  paceline explain vae -n 20 --json | jq .why")]
pub(super) struct ExplainArgs {
    /// The job's name
    job: String,

    /// How many decisions
    #[arg(
        short = 'n', long = "decisions", value_name = "NUMBER", default_value_t = 5,
        value_parser = clap::value_parser!(u16).range(1..=1000)
    )]
    decisions: u16,

    /// Print the log's entries as JSON, one object a line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    source: Source,
}

/// Where the audit log is.
#[derive(Debug, Args)]
pub(super) struct Source {
    #[command(flatten)]
    state: StateArgs,

    #[command(flatten)]
    control: ControlArgs,
}

impl Source {
    /// The end of the log, or that of one job's story.
    pub(super) async fn tail(&self, last: u16, job: Option<&str>) -> anyhow::Result<Vec<Record>> {
        let folder = self.state.folder();
        if self.state.state_dir.is_some() || read::exists(&folder) {
            let records = match job {
                Some(job) => read::story(&folder, job, last.into()),
                None => read::last(&folder, last.into()),
            };
            return records.map_err(|error| unreadable(&folder, error));
        }
        let request = Request::Audit(Tail { last, job: job.map(str::to_owned) });
        let none = || format!("there is no audit log in {}", folder.display());
        let reply = self.control.ask(&request).await.with_context(none)?;
        if let Reply::Audit(records) = reply { Ok(records) } else { Err(unexpected(reply)) }
    }

    /// Which jobs there are, for somebody who asked for another.
    fn jobs(&self) -> String {
        let jobs = read::jobs(&self.state.folder()).unwrap_or_default();
        let names: Vec<String> = jobs.iter().take(SUGGESTED).map(|job| plain(job)).collect();
        if names.is_empty() { String::new() } else { format!("; it tells of {}", names.join(", ")) }
    }
}

/// So many jobs are named where one is not found.
const SUGGESTED: usize = 10;

/// A folder that is not there was mistyped; anything else is a failure.
pub(super) fn unreadable(folder: &std::path::Path, error: io::Error) -> anyhow::Error {
    let folder = folder.display();
    if error.kind() == io::ErrorKind::NotFound {
        return BadUsage(format!("there is no audit log in {folder}")).into();
    }
    anyhow::Error::from(error).context(format!("the audit log in {folder} cannot be read"))
}

pub(super) async fn run(args: ExplainArgs) -> anyhow::Result<ExitCode> {
    let story = args.source.tail(args.decisions, Some(&args.job)).await?;
    if story.is_empty() {
        let (job, others) = (plain(&args.job), args.source.jobs());
        return Err(BadUsage(format!("the audit log tells nothing of {job}{others}")).into());
    }
    print(&if args.json { as_json(&story)? } else { as_sentences(&story) })?;
    Ok(ExitCode::SUCCESS)
}

/// The entries, a line each.
pub(super) fn as_json(records: &[Record]) -> serde_json::Result<String> {
    records.iter().map(|record| Ok(plain_json(&serde_json::to_string(record)?) + "\n")).collect()
}

/// The entries as sentences; what came of a decision stands under it.
pub(super) fn as_sentences(records: &[Record]) -> String {
    let line = |Record { at, entry, .. }: &Record| {
        let under = matches!(entry, Entry::Limited { .. } | Entry::Failed { .. });
        let indent = if under { "  " } else { "" };
        format!("{}  {indent}{}\n", moment(*at), plain(&entry.to_string()))
    };
    records.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Audit;

    fn decided(number: u64, job: &str, why: &str) -> Entry {
        Entry::Decided {
            number,
            job: job.to_owned(),
            class: "CL".to_owned(),
            score: Some(0.0012),
            chosen: 0.25,
            moves_to: None,
            ends_in: None,
            fair_ends_in: None,
            why: why.to_owned(),
        }
    }

    fn limited(job: &str) -> Entry {
        Entry::Limited {
            job: job.to_owned(),
            container: format!("of-{job}"),
            from: "100.0 %".to_owned(),
            to: "25.0 %".to_owned(),
            why: "the policy's choice".to_owned(),
            seconds: 0.0312,
        }
    }

    fn told(entries: &[Entry], job: &str, decisions: usize) -> Vec<Entry> {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Audit::open(folder.path()).unwrap();
        for entry in entries {
            log.write(entry);
        }
        let story = read::story(folder.path(), job, decisions).unwrap();
        story.into_iter().map(|record| record.entry).collect()
    }

    #[test]
    fn a_story_begins_with_a_decision_and_tells_nothing_of_others() {
        let restored =
            Entry::Restored { container: "of-vae".to_owned(), how: "as it was".to_owned() };
        let entries = [
            decided(1, "vae", "new"),
            limited("vae"),
            decided(2, "vae", "still falls"),
            decided(2, "vae2", "another"),
            decided(3, "vae", "converged"),
            limited("vae"),
            limited("mnist"),
            restored.clone(),
        ];
        let expected = [entries[4].clone(), limited("vae"), restored.clone()];
        assert_eq!(told(&entries, "vae", 1), expected);
        assert_eq!(told(&entries, "vae", 9).len(), 6);
        assert!(told(&entries, "va", 9).is_empty());
    }

    #[test]
    fn sentences_have_their_time_and_nothing_in_them_is_obeyed() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Audit::open(folder.path()).unwrap();
        let mut planned = decided(7, "a\x1b[2Jb\nc", "the least work left");
        if let Entry::Decided { ends_in, fair_ends_in, .. } = &mut planned {
            (*ends_in, *fair_ends_in) = (Some(40.2), Some(62.0));
        }
        log.write(&planned);
        log.write(&limited("a\x1b[2Jb\nc"));
        let mut story = read::story(folder.path(), "a\x1b[2Jb\nc", 5).unwrap();
        for record in &mut story {
            record.at = 1_760_000_000.5;
        }
        let name = "a\\u{1b}[2Jb\\u{a}c";
        let expected = format!(
            "2025-10-09T08:53:20Z  decision 7: {name} is given 25.0 % (CL, score 0.0012): \
             the least work left; ends in about 40 s; under equal sharing in 62 s\n\
             2025-10-09T08:53:20Z    {name} was limited from 100.0 % to 25.0 % in 31.2 ms: \
             the policy's choice\n"
        );
        assert_eq!(as_sentences(&story), expected);
        for line in as_json(&story).unwrap().lines() {
            assert!(!line.chars().any(char::is_control), "{line:?}");
        }
    }
}
