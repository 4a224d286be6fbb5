//! `paceline audit`: whether the audit log holds, and what stands at its end.

use std::process::ExitCode;

use anyhow::ensure;
use clap::{Args, Subcommand};

use super::explain::{Source, as_json, as_sentences, unreadable};
use super::figures::moment;
use super::plain::{plain, print};
use super::state::StateArgs;
use crate::audit::verify::{Verdict, verify};
use crate::audit::{Link, read};
use crate::exit::BadUsage;

/// Look at the audit log: all that was decided, done, ordered and noticed
#[derive(Debug, Args)]
pub(super) struct AuditArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Check that nothing in the log was changed, removed or put in afterwards
    ///
    /// Every entry holds the hash of the one before. Exit code 0 when the chain holds, 1 when it is
    /// broken. Whoever keeps the last hash elsewhere can ask for it later: a log that was written
    /// anew as a whole no longer has it.
    #[command(after_help = "Examples:
  paceline audit verify
  paceline audit verify --anchor 2c16c03e…        from an earlier answer, all 64 digits")]
    Verify(VerifyArgs),

    /// Show the last entries
    #[command(after_help = "Example:
  paceline audit tail -n 50 --json | jq 'select(.what == \"ordered\")'")]
    Tail(TailArgs),
}

#[derive(Debug, Args)]
struct VerifyArgs {
    /// The hash of an entry that must still be there
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
    /// How many entries
    #[arg(short = 'n', long = "entries", value_name = "NUMBER", default_value_t = 20)]
    entries: u16,

    /// Print JSON, one object a line
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
    if !read::exists(&folder) {
        return Err(BadUsage(format!("there is no audit log in {}", folder.display())).into());
    }
    let verdict = verify(&folder, args.anchor.as_ref());
    let verdict = verdict.map_err(|error| unreadable(&folder, error))?;
    print(&if args.json {
        serde_json::to_string_pretty(&verdict)? + "\n"
    } else {
        text(&verdict)
    })?;
    ensure!(verdict.broken == 0, "the audit log is broken in {} places", verdict.broken);
    ensure!(verdict.holds(), "no entry of the audit log has the hash that was asked for");
    Ok(ExitCode::SUCCESS)
}

fn text(verdict: &Verdict) -> String {
    let Verdict { files, entries, first, last, torn, breaks, broken, .. } = verdict;
    let mut lines: Vec<String> = breaks.iter().map(|at| plain(&at.to_string())).collect();
    let described = u64::try_from(breaks.len()).unwrap_or(u64::MAX);
    if *broken > described {
        lines.push(format!("and {} more", broken - described));
    }
    if *torn {
        lines.push("the last line is not whole: its writer was cut short, or is at it".to_owned());
    }
    lines.push(format!("{entries} entries in {files} files"));
    if let (Some(first), Some(last)) = (first, last) {
        lines.push(format!("from number {first} to {}, of {}", last.seq, moment(last.at)));
        lines.push(format!("last hash {}", last.hash));
    }
    lines.join("\n") + "\n"
}
