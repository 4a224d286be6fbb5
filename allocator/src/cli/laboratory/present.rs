//! The commands.

use std::process::ExitCode;

use clap::Subcommand;
use paceline_api::usage::INTERRUPTED;
use paceline_bench::BenchArgs;
use paceline_bench::command::{bench, experiments, fit, scenarios, simulate};

use super::super::engine::EngineArgs;
use super::super::state;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Laboratory {
    Simulate(simulate::SimulateArgs),
    Scenarios(scenarios::ScenariosArgs),
    Fit(fit::FitArgs),
    Bench(Box<BenchArgs>),
    Experiments(experiments::ExperimentsArgs),
}

impl Laboratory {
    pub(in crate::cli) async fn run(self, engine: &EngineArgs) -> anyhow::Result<ExitCode> {
        match self {
            Self::Simulate(args) => simulate::run(&args),
            Self::Scenarios(args) => scenarios::run(&args),
            Self::Fit(args) => fit::run(&args),
            Self::Experiments(args) => experiments::run(&args),
            Self::Bench(mut args) => {
                args.host = Some(engine.host.clone());
                args.state = state::by_environment();
                let runtime = engine.connect().await?;
                Ok(match bench::run(*args, runtime).await? {
                    bench::Outcome::Done => ExitCode::SUCCESS,
                    bench::Outcome::Interrupted => ExitCode::from(INTERRUPTED),
                })
            }
        }
    }
}
