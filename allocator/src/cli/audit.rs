//! `paceline audit`: verifies the audit log, and shows its last entries.

use std::process::ExitCode;

use anyhow::ensure;
use clap::{Args, Subcommand};
use paceline_api::audit::verify::{End, Verdict, verify};
use paceline_api::audit::{Link, read};
use paceline_api::figures::{counted, moment};
use paceline_api::plain::{plain, print};
use paceline_api::usage::whole_number;

use super::explain::{Source, as_json, as_sentences, no_audit_log, unreadable};
use super::state::StateArgs;

/// Verify or show the audit log: decisions, actions, orders and observations
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  paceline audit tail                  what the allocator did last, and why
  paceline audit verify                is every entry still as it was written?")]
pub(super) struct AuditArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Check that no entry of the log was changed, removed, inserted or cut off
    ///
    /// Every entry contains the hash of the previous one. Entries that were cut off at either end
    /// are noticed too: audit.head has the number and hash of the last one. The exit code is 0 if
    /// the chain is intact, and 1 if it is broken. To detect a log that was rewritten completely,
    /// store the last hash elsewhere and give it as --anchor later: a rewritten log does not
    /// contain it.
    #[command(after_help = "Examples:
  paceline audit verify
  paceline audit verify --anchor 2c16c03e…        the hash of an earlier answer, all 64 digits")]
    Verify(VerifyArgs),

    /// Show the last entries
    #[command(after_help = "Example:
  paceline audit tail -n 50 --json | jq 'select(.what == \"ordered\")'")]
    Tail(TailArgs),
}

#[derive(Debug, Args)]
struct VerifyArgs {
    /// The hash of an entry that the log must still contain
    #[arg(long, value_name = "HASH")]
    anchor: Option<Link>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    state: StateArgs,
}

#[derive(Debug, Args)]
struct TailArgs {
    /// The number of entries
    #[arg(
        short = 'n', long = "entries", value_name = "NUMBER", default_value_t = 20,
        value_parser = whole_number(0, u16::MAX)
    )]
    entries: u16,

    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    source: Source,
}

pub(super) async fn run(args: AuditArgs) -> anyhow::Result<ExitCode> {
    match args.what {
        What::Verify(args) => check(&args),
        What::Tail(args) => {
            let records = args.source.tail(args.entries, None).await?;
            print(&if args.json { as_json(&records)? } else { as_sentences(&records) })?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn check(args: &VerifyArgs) -> anyhow::Result<ExitCode> {
    let folder = args.state.folder();
    let failed = |error| unreadable(&folder, error);
    if !read::try_exists(&folder).map_err(failed)? {
        return Err(no_audit_log(&folder).into());
    }
    let verdict = verify(&folder, args.anchor.as_ref()).map_err(failed)?;
    print(&if args.json {
        serde_json::to_string_pretty(&verdict)? + "\n"
    } else {
        text(&verdict)
    })?;
    ensure!(verdict.broken == 0, "the audit log is broken in {}", counted(verdict.broken, "place"));
    ensure!(verdict.holds(), "the audit log contains no entry with the hash of --anchor");
    Ok(ExitCode::SUCCESS)
}

fn text(verdict: &Verdict) -> String {
    let Verdict { files, entries, first, last, torn, breaks, broken, end, .. } = verdict;
    let mut lines: Vec<String> = breaks.iter().map(|at| plain(&at.to_string())).collect();
    let described = u64::try_from(breaks.len()).unwrap_or(u64::MAX);
    if *broken > described {
        lines.push(format!("and {} more", broken - described));
    }
    if *torn {
        lines.push(
            "the last line is incomplete: its writer was interrupted, or is still writing"
                .to_owned(),
        );
    }
    lines.extend(match end {
        End::Whole | End::Broken => None,
        End::Unknown => Some(
            "without a record of its end, as version 0.1.0 has written it: entries that were cut off \
             cannot be noticed"
                .to_owned(),
        ),
        End::LostWithMachine { entries } => Some(format!(
            "the last {entries} entries were not on the disk when the machine failed"
        )),
    });
    let entries = if *entries == 1 { "1 entry".to_owned() } else { format!("{entries} entries") };
    let files = counted(*files, "file");
    lines.push(format!("{entries} in {files}"));
    if let (Some(first), Some(last)) = (first, last) {
        lines.push(format!("from number {first} to {}, of {}", last.seq, moment(last.at)));
        lines.push(format!("last hash {}", last.hash));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit;

    #[test]
    fn numbers_have_their_plural_only_where_they_need_it() {
        let verdict =
            |entries, files| Verdict { entries, files, end: End::Whole, ..Verdict::default() };
        assert_eq!(text(&verdict(1, 1)), "1 entry in 1 file\n");
        assert_eq!(text(&verdict(0, 2)), "0 entries in 2 files\n");
    }

    #[test]
    fn log_that_cannot_be_read_is_a_failure_and_not_bad_usage() {
        let folder = tempfile::tempdir().unwrap();
        // Root may read every folder, but not a link to itself.
        let unreadable = folder.path().join("state");
        std::os::unix::fs::symlink(&unreadable, &unreadable).unwrap();
        let missing = folder.path().join("none");
        for (path, is_failure, words) in [
            (unreadable, true, "cannot read the audit log in"),
            (missing, false, "no audit log in"),
        ] {
            let state = StateArgs { state_dir: Some(path) };
            let error = check(&VerifyArgs { anchor: None, json: false, state }).unwrap_err();
            assert_eq!(exit::is_of_the_machine(&error), is_failure, "{error:#}");
            assert!(error.to_string().starts_with(words), "{error:#}");
        }
    }
}
