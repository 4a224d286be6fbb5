//! `paceline explain JOB`: the last decisions on a job, as sentences from the audit log.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use paceline_api::audit::{Entry, Record, read};
use paceline_api::figures::moment;
use paceline_api::plain::{plain, plain_json, print};
use paceline_api::usage::{BadUsage, whole_number};
use paceline_server::control::{AskError, Reply, Request, Tail};

use super::control_args::ControlArgs;
use super::orders::{name, unexpected};
use super::state::StateArgs;

/// Explain a job's CPU limit: the last decisions on the job, and their effects
///
/// The command reads the audit log, and needs no running allocator. Without --state-dir, and if the
/// default folder has no log, it asks the running allocator.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  paceline explain vae
  paceline explain vae -n 20 --json | jq .why")]
pub(super) struct ExplainArgs {
    /// The job's name
    #[arg(value_parser = name)]
    job: String,

    /// The number of decisions
    #[arg(
        short = 'n', long = "decisions", value_name = "NUMBER", default_value_t = 5,
        value_parser = whole_number(1_u16, 1000)
    )]
    decisions: u16,

    /// Print the log's entries as JSON, one object per line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    source: Source,
}

/// The source of the audit log.
#[derive(Debug, Args)]
pub(super) struct Source {
    #[command(flatten)]
    state: StateArgs,

    #[command(flatten)]
    control: ControlArgs,
}

impl Source {
    /// The last entries of the log, or of one job's story.
    pub(super) async fn tail(&self, last: u16, job: Option<&str>) -> anyhow::Result<Vec<Record>> {
        let folder = self.state.folder();
        let failed = |error| unreadable(&folder, error);
        if self.state.state_dir.is_some() {
            // A folder without a log is as one that is missing.
            if !read::try_exists(&folder).map_err(failed)? {
                return Err(no_audit_log(&folder).into());
            }
        } else if !read::exists(&folder) {
            return self.ask(&folder, last, job).await;
        }
        let records = match job {
            Some(job) => read::story(&folder, job, last.into()),
            None => last_entries(&folder, last.into()),
        };
        records.map_err(failed)
    }

    /// The entries that the running allocator has.
    async fn ask(
        &self,
        folder: &Path,
        last: u16,
        job: Option<&str>,
    ) -> anyhow::Result<Vec<Record>> {
        let request = Request::Audit(Tail { last, job: job.map(str::to_owned) });
        let none = no_audit_log(folder).0;
        match self.control.ask(&request).await {
            Ok(Reply::Audit(records)) => Ok(records),
            Ok(reply) => Err(unexpected(reply)),
            Err(error) if matches!(error.downcast_ref(), Some(AskError::NotRunning(_))) => {
                Err(BadUsage(format!("{none}; {error}")).into())
            }
            Err(error) => Err(error.context(none)),
        }
    }

    /// The jobs in the log, as a hint for a user who gave an unknown one.
    fn jobs(&self) -> String {
        let jobs = read::jobs(&self.state.folder()).unwrap_or_default();
        let names: Vec<String> = jobs.iter().take(SUGGESTED).map(|job| plain(job)).collect();
        if names.is_empty() { String::new() } else { format!("; it contains {}", names.join(", ")) }
    }
}

/// The last entries of the log in a folder. An error if all of its last lines are something else.
fn last_entries(folder: &Path, last: usize) -> io::Result<Vec<Record>> {
    let (records, others) = read::last_and_others(folder, last)?;
    if others > 0 && records.is_empty() {
        let why = "its last lines are not entries; run `paceline audit verify`";
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(records)
}

/// The most jobs that the hint names.
const SUGGESTED: usize = 10;

/// The error for a folder without an audit log.
pub(super) fn no_audit_log(folder: &Path) -> BadUsage {
    BadUsage(format!("no audit log in {}: check --state-dir", folder.display()))
}

/// The error for an unreadable log. A missing folder is bad usage, since its path was mistyped.
pub(super) fn unreadable(folder: &Path, error: io::Error) -> anyhow::Error {
    if error.kind() == io::ErrorKind::NotFound {
        return no_audit_log(folder).into();
    }
    let folder = folder.display();
    anyhow::Error::from(error).context(format!("cannot read the audit log in {folder}"))
}

pub(super) async fn run(args: ExplainArgs) -> anyhow::Result<ExitCode> {
    let story = args.source.tail(args.decisions, Some(&args.job)).await?;
    if story.is_empty() {
        let (job, others) = (plain(&args.job), args.source.jobs());
        let others = if others.is_empty() {
            format!("; `paceline check {job}` shows what is missing; a dry run writes no audit log")
        } else {
            others
        };
        return Err(BadUsage(format!("the audit log contains no job {job}{others}")).into());
    }
    print(&if args.json { as_json(&story)? } else { as_sentences(&story) })?;
    Ok(ExitCode::SUCCESS)
}

/// The entries as JSON, one per line.
pub(super) fn as_json(records: &[Record]) -> serde_json::Result<String> {
    records.iter().map(|record| Ok(plain_json(&serde_json::to_string(record)?) + "\n")).collect()
}

/// The entries as sentences. The effects of a decision are indented under it.
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
    use paceline_api::audit::Audit;

    use super::*;

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

    fn story_of(entries: &[Entry], job: &str, decisions: usize) -> Vec<Entry> {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Audit::open(folder.path()).unwrap();
        for entry in entries {
            log.write(entry);
        }
        let story = read::story(folder.path(), job, decisions).unwrap();
        story.into_iter().map(|record| record.entry).collect()
    }

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        source: Source,
    }

    #[tokio::test]
    async fn log_that_is_nowhere_is_bad_usage() {
        let folder = tempfile::tempdir().unwrap();
        let words = ["tail", "--control", "/no/such"];
        let Line { source } = clap::Parser::try_parse_from(words).unwrap();
        let asked = source.ask(folder.path(), 5, None).await.unwrap_err();
        let text = asked.to_string();
        assert!(text.contains("no audit log") && text.contains("`paceline run`"), "{text}");
        let state = StateArgs { state_dir: Some(folder.path().to_owned()) };
        let read = Source { state, ..source }.tail(5, None).await.unwrap_err();
        for error in [asked, read] {
            assert!(error.is::<BadUsage>(), "{error:#}");
        }
    }

    #[tokio::test]
    async fn log_of_which_no_line_is_an_entry_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("audit.jsonl"), b"garbage\n\xff\n").unwrap();
        let words = ["tail", "--state-dir", folder.path().to_str().unwrap()];
        let Line { source } = clap::Parser::try_parse_from(words).unwrap();
        let error = format!("{:#}", source.tail(5, None).await.unwrap_err());
        assert!(error.contains("run `paceline audit verify`"), "{error}");
    }

    #[test]
    fn story_starts_with_a_decision_and_has_no_other_jobs() {
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
        assert_eq!(story_of(&entries, "vae", 1), expected);
        assert_eq!(story_of(&entries, "vae", 9).len(), 6);
        assert!(story_of(&entries, "va", 9).is_empty());
    }

    #[test]
    fn sentences_have_times_and_escape_control_characters() {
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
