//! The default command: reads sources until SIGTERM.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use paceline_reporter::runtime;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::args::SourceArgs;
use super::state_file::StateFile;
use super::{Failure, chain};
use crate::job::Job;
use crate::say::say;
use crate::source::datagram;
use crate::source::docker::Container;
use crate::source::files::Files;

/// Runs until SIGTERM or SIGINT, or until all containers have ended.
pub(super) fn run(args: &SourceArgs) -> Result<ExitCode, Failure> {
    let patterns = args.job.patterns()?;
    let saved = args.saved()?;
    args.check()?;
    let plan = args.forward.plan()?;
    let stop = Arc::new(AtomicBool::new(false));
    let mut signals = Signals::new([SIGTERM, SIGINT])
        .map_err(|error| Failure::running(format!("cannot handle signals: {}", chain(&error))))?;
    let before = saved.progress.clone();
    // The address is announced below, also that of a socket.
    let job = args.job.start(|builder| {
        let builder = builder.hide_address();
        match saved.progress {
            Some(progress) => builder.resume(progress),
            None => builder,
        }
    })?;
    let flush = plan.start(&job, before.as_ref())?;
    for address in &args.statsd {
        datagram::listen(Arc::clone(&job), address).map_err(|error| {
            Failure::usage(format!(
                "cannot listen on --statsd {address}: {error}; end the process that holds it, or name \
                 another address"
            ))
        })?;
    }
    let mut files = Files::new(&job, &args.files(), &patterns, &saved.files)
        .map_err(|error| Failure::running(format!("cannot open the sources: {}", chain(&error))))?;
    let names = &args.docker;
    let containers: Vec<_> = names
        .iter()
        .map(|name| Container::new(&job, name, &patterns, saved.containers.get(name)))
        .collect::<Result<_, _>>()
        .map_err(|error| Failure::usage(format!("cannot read --docker: {error}")))?;
    let runtime = runtime()
        .map_err(|error| Failure::running(format!("cannot read --docker containers: {error}")))?;
    let seen: Vec<_> = names.iter().cloned().zip(containers.iter().map(Container::seen)).collect();
    let mut state = args.state.as_deref().map(StateFile::new);
    // After everything that may fail.
    announce(&job);
    for remark in args.remarks() {
        say(format_args!("{remark}"));
    }

    let stopper = Arc::clone(&stop);
    let (detach, detached) = watch::channel(false);
    let handle = signals.handle();
    let reader = thread::current();
    thread::scope(|scope| {
        scope.spawn(move || {
            if signals.forever().next().is_some() {
                stopper.store(true, Ordering::Relaxed);
                detach.send_replace(true);
                reader.unpark();
            }
        });
        if !containers.is_empty() {
            scope.spawn(|| attach(&runtime, &job, containers, &detached, &stop));
        }
        files.run(&stop, |files| {
            if let Some(state) = &mut state {
                state.save(&job, files, &seen);
            }
        });
        handle.close();
    });
    // The containers' last lines have been read meanwhile.
    if let Some(state) = &mut state {
        state.save_last(&job, &files, &seen);
    }
    // A name that is still being resolved must not delay the end.
    runtime.shutdown_background();
    job.close();
    flush.run(&job);
    Ok(ExitCode::SUCCESS)
}

/// Reads containers. When the last one has ended, the job has ended and the process stops.
fn attach(
    runtime: &Runtime,
    job: &Job,
    containers: Vec<Container>,
    detached: &watch::Receiver<bool>,
    stop: &AtomicBool,
) {
    let ended = runtime.block_on(async {
        let all = containers.into_iter().map(|container| container.run(detached.clone()));
        futures_util::future::join_all(all).await
    });
    let known: Vec<_> = ended.into_iter().flatten().collect();
    if !known.is_empty() {
        job.end(known.iter().all(|well| *well));
        stop.store(true, Ordering::Relaxed);
    }
}

/// Prints the address of the endpoint.
fn announce(job: &Job) {
    if let Some(address) = job.address() {
        say(format_args!("listening on {address}"));
    }
}
