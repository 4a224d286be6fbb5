//! A parameter server, instead of a training.

use std::io::{self, Write, stdout};
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use paceline_ps::{Adam, News, Server, ServerConfig, Traffic};
use paceline_reporter::Reporter;
use paceline_workload::{RoleArgs, note};

use crate::aims::aiming;
use crate::program::BadInput;
use crate::setup::{ADAM, Setup};

/// Keeps parameters for workers until `--steps` of their gradients have arrived and they have left, or
/// until it is asked to stop. It reports the losses of all workers, and prints the bytes sent to and
/// received from each.
pub fn serve(setup: Setup, role: &RoleArgs) -> anyhow::Result<()> {
    let Setup { workload, args, stop, .. } = setup;
    let adam = Adam { learning_rate: args.learning_rate.unwrap_or(ADAM), ..Adam::default() };
    let config = ServerConfig { slice: role.part, adam, steps: args.steps.unwrap_or(u64::MAX) };
    let cannot = || format!("cannot listen on {}", role.listen);
    let server = Server::bind(&role.listen, config).with_context(cannot).map_err(BadInput::new)?;
    let address = server.local_addr()?;

    let job = Reporter::builder(format!("{workload}-ps")).loss_name("loss of the workers");
    let job = aiming(job, args.targets());
    let job = match args.steps {
        Some(steps) => job.total_steps(steps),
        None => job,
    };
    let job = if args.stop_at_objective { job.stop_at_objective() } else { job };
    let reporter = job.from_env().start().unwrap_or_else(|error| {
        note(format_args!("serving without reports: {:#}", anyhow::Error::from(error)));
        Reporter::disabled()
    });
    stop.when_asked();
    writeln!(stdout(), "keeping part {} of the parameters on {address}", role.part)?;

    let log = Mutex::new(Log { interval: args.log_interval, workers: 0 });
    let served = server.run(stop.flag(), |news| {
        if let News::Pushed { loss, .. } = news {
            reporter.record(Some(loss), None);
            if reporter.should_stop() {
                stop.request();
            }
        }
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.tell(&news, server.traffic()).is_err() {
            // Standard output is closed.
            stop.request();
        }
    });
    match &served {
        Ok(()) => reporter.finish(),
        Err(_) => reporter.fail(),
    }
    print(server.traffic())?;
    Ok(served?)
}

/// The printed lines of a server.
#[derive(Debug)]
struct Log {
    interval: u64,
    workers: usize,
}

impl Log {
    fn tell(&mut self, news: &News, traffic: &Traffic) -> io::Result<()> {
        match news {
            News::Joined { peer, workers } => {
                self.workers = *workers;
                writeln!(stdout(), "{peer} has joined: {workers} workers")
            }
            News::Left { peer, workers } => {
                self.workers = *workers;
                writeln!(stdout(), "{peer} has left: {workers} workers")?;
                print(traffic)
            }
            News::Refused { peer, why } => writeln!(stdout(), "{peer} is refused: {why}"),
            News::Pushed { loss, version } if version.is_multiple_of(self.interval) => {
                writeln!(stdout(), "Step: {version}\tLoss: {loss:.6}\tWorkers: {}", self.workers)
            }
            News::Pushed { .. } => Ok(()),
        }
    }
}

fn print(traffic: &Traffic) -> io::Result<()> {
    traffic.peers().iter().try_for_each(|one| {
        writeln!(stdout(), "traffic: {} sent={} received={}", one.peer, one.sent, one.received)
    })
}
