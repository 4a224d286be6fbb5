//! The papers' clusters on one machine: `make cluster-demo`. A real Swarm of a manager and three
//! workers, each with an engine of its own, runs real training jobs; tables show the results.

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
    /// Which demonstrations to run: all by default
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
    /// Eight jobs, spread by the engine alone and under `SpeCon`
    Spread,
    /// Twelve inference jobs with targets for their batch time, by the engine alone and under `DQoES`
    Objectives,
    /// One gang in three layouts: the bytes sent between machines
    Placement,
    /// Ten gangs, one every few seconds, under KOD2, fifo and fifo-gang
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
