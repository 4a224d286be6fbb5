//! `watch`: jobs in a terminal, or once as text or JSON.

use std::io::{self, IsTerminal, Write};

use crate::address::Address;
use crate::args::WatchArgs;
use crate::client::{self, Failure};
use crate::discover::Search;
use crate::error::{Ending, Error};
use crate::{clock, listing, snapshot, terminal, watcher};

/// Shows one job, or all of this machine, until the user quits.
///
/// # Errors
/// If an option cannot be used, if the job does not answer, or if the terminal fails.
pub async fn watch(args: WatchArgs) -> Result<Ending, Error> {
    let search = match &args.address {
        Some(address) => Search::of_job(address.clone()),
        None => args.search.search(&[])?,
    };
    if args.once || args.json || !io::stdout().is_terminal() {
        print(&now(&args, &search).await?)?;
        return Ok(Ending::Done);
    }
    // A missing job is reported before the screen is taken.
    if let Some(address) = &args.address {
        client::progress(address).await.map_err(|failure| no_answer(address, &failure))?;
    }
    let ended = terminal::run(&search, args.address.is_some()).await;
    ended.map_err(|error| Error::Running(format!("cannot use the terminal: {error}; try --once")))
}

/// What is known now.
async fn now(args: &WatchArgs, search: &Search) -> Result<String, Error> {
    let (board, failures) = watcher::once(search).await;
    if let Some(address) = &args.address
        && let Some(failure) = failures.get(address)
    {
        return Err(no_answer(address, failure));
    }
    board.read(|jobs| {
        if args.json {
            let json = listing::json(jobs).map_err(|error| Error::Running(error.to_string()))?;
            return Ok(json + "\n");
        }
        let groups = jobs.groups();
        Ok(match (&args.address, groups.first()) {
            (Some(_), Some(group)) => snapshot::job(group, clock::now()),
            _ => snapshot::list(jobs, search),
        })
    })
}

fn no_answer(address: &Address, failure: &Failure) -> Error {
    let advice = match failure {
        Failure::Absent(_) => {
            "start a job there, or leave ADDRESS out to see all jobs of this machine"
        }
        Failure::Silent => "see whether the job is stopped",
        Failure::Foreign(_) => "name the address that the job printed at its start",
    };
    Error::Running(format!("cannot watch {address}: {failure}; {advice}"))
}

/// Prints to standard output. A reader that closes the pipe early is not an error.
fn print(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::Running(format!("cannot print: {error}; see where the output goes")))
        }
        _ => Ok(()),
    }
}
