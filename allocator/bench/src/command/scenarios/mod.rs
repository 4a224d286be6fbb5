//! `paceline scenarios`: lists the built-in scenarios, and runs them.

mod as_json;
mod page;
mod results;
mod standing;
mod verdicts;
mod wrong;

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use paceline_api::usage::{BadUsage, unreadable};
use paceline_api::{bounded, plain};
use paceline_policy::names::did_you_mean;
use paceline_sim::Scenario;
use paceline_sim::scenario::{LIBRARY, Listed};
use serde_json::json;

use crate::text::wrap::wrap;
use results::RunArgs;

/// List the scenarios that `simulate` knows by name, print one as TOML, or run them all
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  paceline scenarios
  paceline scenarios FC-3 > mine.toml      to edit and simulate a copy
  paceline scenarios run FC-3 DQ-var       every policy, the bounds, and the papers' claims"
)]
pub struct ScenariosArgs {
    #[command(subcommand)]
    command: Option<ScenariosCommand>,

    /// Print this scenario's TOML
    name: Option<String>,

    /// Print the list as JSON
    #[arg(long, conflicts_with = "name")]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum ScenariosCommand {
    Run(RunArgs),
}

/// The text without its first line, which names the schema by a path from the file's own folder.
fn without_schema(text: &str) -> &str {
    let rest = text.strip_prefix("#:schema ").and_then(|rest| rest.split_once('\n'));
    rest.map_or(text, |(_, rest)| rest)
}

/// Lists the scenarios, or runs every policy in each.
pub fn run(args: &ScenariosArgs) -> anyhow::Result<ExitCode> {
    if let Some(ScenariosCommand::Run(args)) = &args.command {
        return results::run(args);
    }
    if let Some(name) = &args.name {
        let listed = listed(name).ok_or_else(|| unknown(name))?;
        plain::print(without_schema(listed.text))?;
        return Ok(ExitCode::SUCCESS);
    }
    let (mut all, mut text) = (Vec::new(), String::new());
    for listed in LIBRARY {
        let scenario = Scenario::parse(listed.text)?;
        let policies: Vec<String> = scenario.arms.iter().map(ToString::to_string).collect();
        let jobs = scenario.draw(1).len().max(scenario.gangs.len());
        if args.json {
            all.push(json!({
                "name": scenario.name,
                "description": scenario.description,
                "jobs": jobs,
                "nodes": scenario.nodes.len(),
                "seeds": scenario.seeds,
                "policies": policies,
            }));
            continue;
        }
        let nodes = scenario.nodes.len();
        text += &wrap(&scenario.description, &format!("{:<8} ", scenario.name), &" ".repeat(9));
        let policies = policies.join(", ");
        writeln!(text, "{:<8} jobs: {jobs}, nodes: {nodes}, policies: {policies}", "")?;
    }
    if args.json {
        text = serde_json::to_string_pretty(&all)? + "\n";
    }
    plain::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The scenario of a file, or else the built-in one of that name; `-` is standard input.
pub(super) fn open(path: &Path) -> Result<Scenario, BadUsage> {
    let is_file = bounded::is_standard_input(path) || path.exists() || has_form_of_file(path);
    let text = match path.to_str().filter(|_| !is_file) {
        Some(name) => listed(name).ok_or_else(|| unknown(name))?.text.to_owned(),
        None => bounded::SCENARIO.read_given(path).map_err(|error| unreadable(path, &error))?,
    };
    let name = bounded::shown(path);
    Scenario::parse(&text).map_err(|error| BadUsage(format!("{name}: {error}")))
}

/// Whether this is the path of a file and no name, also where the file is missing.
fn has_form_of_file(path: &Path) -> bool {
    path.components().count() > 1
        || path.has_root()
        || path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
}

fn listed(name: &str) -> Option<&'static Listed> {
    LIBRARY.iter().find(|listed| listed.name.eq_ignore_ascii_case(name))
}

fn unknown(name: &str) -> BadUsage {
    let names = LIBRARY.iter().map(|listed| listed.name);
    let hint = did_you_mean(name, names.clone());
    let names: Vec<&str> = names.collect();
    BadUsage(format!(
        "unknown scenario {name:?}: expected a file or one of {}{hint}",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn path_of_a_missing_file_is_not_taken_for_a_name() {
        for path in ["/no/such.toml", "none/FC-3", "mine.toml", "./FC-3"] {
            let error = open(Path::new(path)).unwrap_err().to_string();
            assert!(error.starts_with(&format!("cannot read {path}: ")), "{error}");
        }
        let error = open(Path::new("FC3")).unwrap_err().to_string();
        assert!(error.contains("did you mean \"FC-3\"?"), "{error}");
        open(Path::new("fc-3")).unwrap();
    }

    #[test]
    fn name_of_a_file_may_be_any_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(OsStr::from_bytes(b"\xff.toml"));
        fs::write(&path, listed("FC-3").unwrap().text).unwrap();
        open(&path).unwrap();
    }
}
