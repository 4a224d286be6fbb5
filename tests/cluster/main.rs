//! The papers' clusters on one machine: a real Swarm of a manager and three workers, each an engine of
//! its own, real training jobs, and tables of what came of it: `make cluster-demo`.

mod machines;
mod objectives;
mod placement;
mod queue;
mod spread;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

/// Real training jobs on a Swarm of four engines on this machine, under Paceline's policies
#[derive(Debug, Parser)]
struct Args {
    /// What to try: all of it, unless said otherwise
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// The training images, as `images/data.sh` finds them
    #[arg(long, value_name = "FOLDER")]
    data: PathBuf,
    /// The image of the workloads
    #[arg(long, value_name = "NAME", default_value = "paceline/workloads")]
    image: String,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Part {
    /// Eight jobs by the engine's own spreading, and under `SpeCon`
    Spread,
    /// Twelve inference jobs with targets for their batches, by the engine alone and under `DQoES`
    Objectives,
    /// One distributed job in three layouts: the bytes that cross between machines
    Placement,
    /// Ten distributed jobs, one every few seconds, under KOD2, fifo and fifo-gang
    Queue,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let parts =
        if args.parts.is_empty() { Part::value_variants().to_vec() } else { args.parts.clone() };
    let data = std::path::absolute(&args.data)?;
    let ware = machines::Ware::fetch(&args.image, data).await?;
    let mut good = true;
    for part in parts {
        good &= match part {
            Part::Spread => spread::run(&ware).await?,
            Part::Objectives => objectives::run(&ware).await?,
            Part::Placement => placement::run(&ware).await?,
            Part::Queue => queue::run(&ware).await?,
        };
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
