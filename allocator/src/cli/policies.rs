//! `paceline policies`: the list of policies.

use std::fmt::Write;
use std::process::ExitCode;

use clap::Args;
use paceline_api::plain;
use paceline_policy::policies::{self, Entry, Scope};
use serde_json::json;

/// List the policies with their parameters, defaults, units and sources
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  paceline policies
  paceline policies --json | jq '.[] | {name, parameters}'")]
pub(super) struct PoliciesArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &PoliciesArgs) -> anyhow::Result<ExitCode> {
    if args.json {
        let all: Vec<_> = policies::ALL.iter().map(as_json).collect();
        plain::print(&(serde_json::to_string_pretty(&all)? + "\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for entry in policies::ALL {
        writeln!(text, "{:<10} {}", entry.name, entry.about)?;
        let (scope, enforcement) = (scope(entry.scope), entry.enforcement);
        writeln!(text, "{:<10} {scope}; enforcement {enforcement}; {}", "", entry.source)?;
        for parameter in entry.parameters {
            writeln!(
                text,
                "{:<10}   {:<13} {:>5} {:<15} {}",
                "", parameter.name, parameter.default, parameter.unit, parameter.about
            )?;
        }
        text.push('\n');
    }
    plain::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

const fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Node => "one node",
        Scope::Cluster => "a cluster",
    }
}

fn as_json(entry: &Entry) -> serde_json::Value {
    let parameters: Vec<_> = entry
        .parameters
        .iter()
        .map(|p| json!({"name": p.name, "default": p.default, "unit": p.unit, "about": p.about}))
        .collect();
    json!({
        "name": entry.name,
        "about": entry.about,
        "scope": scope(entry.scope),
        "source": entry.source,
        "enforcement": entry.enforcement.to_string(),
        "parameters": parameters,
    })
}
