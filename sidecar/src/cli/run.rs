//! Reading what others write, until SIGTERM.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::args::SourceArgs;
use super::{Failure, chain, say};
use crate::job::Job;
use crate::source::datagram;
use crate::source::docker::Container;
use crate::source::files::Files;
use crate::state::Saved;

/// Runs until it is told to end, or until all containers have ended.
pub(super) fn run(args: &SourceArgs) -> Result<ExitCode, Failure> {
    let patterns = args.job.patterns()?;
    let saved = args.saved()?;
    let stop = Arc::new(AtomicBool::new(false));
    let mut signals =
        Signals::new([SIGTERM, SIGINT]).map_err(|error| Failure::running(chain(&error)))?;
    let job = args.job.start(saved.progress)?;
    announce(&job);
    for address in &args.statsd {
        datagram::listen(Arc::clone(&job), address)
            .map_err(|error| Failure::usage(format!("--statsd {address}: {error}")))?;
    }
    let mut files = Files::new(&job, &args.files(), &patterns, &saved.files)
        .map_err(|error| Failure::running(chain(&error)))?;
    let names = &args.docker;
    let containers: Vec<_> =
        names.iter().map(|name| Container::new(&job, name, &patterns)).collect();

    let stopper = Arc::clone(&stop);
    let handle = signals.handle();
    let reader = thread::current();
    thread::scope(|scope| {
        scope.spawn(move || {
            if signals.forever().next().is_some() {
                stopper.store(true, Ordering::Relaxed);
                reader.unpark();
            }
        });
        if !containers.is_empty() {
            scope.spawn(|| attach(&job, containers, &stop));
        }
        let state = args.state.as_deref();
        let mut written = None;
        let mut failing = false;
        files.run(&stop, |files| {
            let Some(path) = state else { return };
            let progress = job.progress();
            let news = progress.as_ref().map(|one| (one.eval.count, one.batch_latency.count));
            if written != Some(news) {
                // What cannot be written now, as on a full disk, is tried again.
                let outcome = Saved { progress, files: files.saved() }.write(path);
                written = outcome.is_ok().then_some(news);
                if let Err(error) = &outcome
                    && !failing
                {
                    say(format_args!("--state {}: {error}; it is tried again", path.display()));
                }
                failing = outcome.is_err();
            }
        });
        handle.close();
    });
    job.close();
    Ok(ExitCode::SUCCESS)
}

/// Reads containers; the end of the last one is the job's, and ours.
fn attach(job: &Job, containers: Vec<Container>, stop: &AtomicBool) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return };
    let ended = runtime.block_on(async {
        let all = containers.into_iter().map(|container| container.run(stop));
        futures_util::future::join_all(all).await
    });
    let known: Vec<_> = ended.into_iter().flatten().collect();
    if !known.is_empty() {
        job.end(known.iter().all(|well| *well));
        stop.store(true, Ordering::Relaxed);
    }
}

/// Says where the endpoint is.
fn announce(job: &Job) {
    if let Some(address) = job.address() {
        say(format_args!("listening on {address}"));
    }
}
