//! Reading what others write, until SIGTERM.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::args::SourceArgs;
use super::{Failure, chain};
use crate::job::Job;
use crate::source::datagram;
use crate::source::docker::Container;
use crate::source::files::Files;
use crate::state::Saved;

/// Runs until it is told to end, or until all containers have ended.
pub(super) fn run(args: &SourceArgs) -> Result<ExitCode, Failure> {
    let patterns = args.job.patterns()?;
    let saved = args.job.saved()?;
    let stop = Arc::new(AtomicBool::new(false));
    let mut signals =
        Signals::new([SIGTERM, SIGINT]).map_err(|error| Failure::running(chain(&error)))?;
    let job = args.job.start(&saved)?;
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
        let state = args.job.state.as_deref();
        let mut written = None;
        files.run(&stop, |files| {
            let Some(path) = state else { return };
            let progress = job.reporter().and_then(paceline_reporter::Reporter::progress);
            let news = progress.as_ref().map(|one| (one.eval.count, one.batch_latency.count));
            if news != written {
                written = news;
                // A full disk is tried again the next time.
                drop(Saved { progress, files }.write(path));
            }
        });
        handle.close();
    });
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
    if let Some(reporter) = job.reporter().filter(|_| !known.is_empty()) {
        if known.iter().all(|well| *well) {
            reporter.finish();
        } else {
            reporter.fail();
        }
        stop.store(true, Ordering::Relaxed);
    }
}

/// Says where the endpoint is.
#[expect(clippy::print_stderr, reason = "this is the command line")]
pub(super) fn announce(job: &Job) {
    if let Some(address) = job.reporter().and_then(|reporter| reporter.local_addr().cloned()) {
        eprintln!("paceline-sidecar: listening on {address}");
    }
}
