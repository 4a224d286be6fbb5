//! `paceline policies`: what there is to choose from.

use std::process::ExitCode;

use clap::Args;
use paceline_policy::policies::{self, Entry, Scope};
use serde_json::json;

/// List the policies with their parameters, defaults, units and sources
#[derive(Debug, Args)]
pub(super) struct PoliciesArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[expect(clippy::print_stdout, reason = "this is what the command is for")]
pub(super) fn run(args: &PoliciesArgs) -> anyhow::Result<ExitCode> {
    if args.json {
        let all: Vec<_> = policies::ALL.iter().map(as_json).collect();
        println!("{}", serde_json::to_string_pretty(&all)?);
        return Ok(ExitCode::SUCCESS);
    }
    for entry in policies::ALL {
        println!("{:<10} {}", entry.name, entry.about);
        println!("{:<10} {}; {}", "", scope(entry.scope), entry.source);
        for parameter in entry.parameters {
            println!(
                "{:<10}   {:<13} {:>5} {:<15} {}",
                "", parameter.name, parameter.default, parameter.unit, parameter.about
            );
        }
        println!();
    }
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
        "parameters": parameters,
    })
}
