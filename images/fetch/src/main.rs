//! Finds the training images on this machine, or fetches them, and prints their folder. Containers
//! mount that folder, so that not each of them fetches its own.

use std::io::{Write, stdout};
use std::path::PathBuf;

use clap::Parser;
use paceline_workload::{Dataset, Places, note};

/// Finds or fetches the training images, checks them, and prints their folder.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "Example: docker run -v \"$(fetch-data)\":/data:ro -e PACELINE_DATA=/data \
                  paceline/workloads vae"
)]
struct Args {
    /// A folder of IDX files, plain or compressed. Otherwise the user's cache, which is filled with
    /// MNIST or, where no server of MNIST is reached, with Fashion-MNIST from Debian
    #[arg(long, env = "PACELINE_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let folder = Places::of_user(Args::parse().data)?.locate()?.canonicalize()?;
    let data = Dataset::load(&folder)?;
    let (train, test) = (data.train.len(), data.test.len());
    note(format_args!("{}: {train} images to train on, {test} to test on", data.name));
    writeln!(stdout(), "{}", folder.display())?;
    Ok(())
}
