//! The arguments of the commands.

use std::path::PathBuf;

use clap::Args;

use crate::address::Address;
use crate::discover::Search;
use crate::error::Error;

/// Where jobs are looked for.
#[derive(Clone, Debug, Default, Args)]
pub struct SearchArgs {
    /// Also look at the Unix sockets in this folder, named `*.sock`; may be given several times
    #[arg(long, value_name = "DIR")]
    folder: Vec<PathBuf>,
}

impl SearchArgs {
    pub(crate) fn search(&self, more: &[Address]) -> Result<Search, Error> {
        for folder in &self.folder {
            let folder_error = |why: String| {
                let folder = folder.display();
                Error::Usage(format!(
                    "cannot read --folder {folder}: {why}; name a folder with the sockets of jobs"
                ))
            };
            std::fs::read_dir(folder).map_err(|error| folder_error(error.to_string()))?;
        }
        Ok(Search::of_machine(&self.folder, more))
    }
}

/// The arguments of `watch`.
#[derive(Clone, Debug, Args)]
pub struct WatchArgs {
    /// The job: a port, host:port, the address of its page, or `unix:PATH` [default: all jobs of this
    /// machine]
    #[arg(value_name = "ADDRESS", conflicts_with = "folder")]
    pub(crate) address: Option<Address>,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    /// Print what is known now as plain text, and exit; the default if the output is not a terminal
    #[arg(long)]
    pub(crate) once: bool,
    /// Print what is known now as one JSON object, and exit
    #[arg(long)]
    pub(crate) json: bool,
}

/// The arguments of `serve`.
#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    /// More jobs to show: ports, host:port or `unix:PATH`
    #[arg(value_name = "ADDRESS")]
    pub(crate) addresses: Vec<Address>,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    /// The loopback address of the page [default: 127.0.0.1:7222, or a free port if that is taken]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) listen: Option<String>,
}
