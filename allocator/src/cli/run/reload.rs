//! The configuration file, read again with each SIGHUP.
//!
//! A file is taken as a whole or not at all: it is read, put together with the command line, and
//! made sure of before anything changes. What a run cannot change is told of, and left.

use std::convert::Infallible;
use std::path::Path;

use tokio::sync::{mpsc, watch};
use tracing::{info, warn};
use tracing_subscriber::reload;

use super::RunArgs;
use super::settings::{Built, Fixed, Settings};
use crate::driver::Renewal;
use crate::exit::BadUsage;
use crate::log::Log;

/// Reads the file, and hands on what has changed.
#[derive(Debug)]
pub(super) struct Reloads {
    args: RunArgs,
    /// What the run began with, as far as it cannot be changed.
    fixed: Fixed,
    /// What is in force.
    settings: Settings,
    log: Log,
    renewals: mpsc::Sender<Renewal>,
}

impl Reloads {
    /// For a run that began with these settings; the driver is to take what is renewed.
    pub(super) fn new(
        args: RunArgs,
        settings: Settings,
        log: Log,
    ) -> (Self, mpsc::Receiver<Renewal>) {
        let (renewals, renewed) = mpsc::channel(1);
        let fixed = settings.fixed.clone();
        (Self { args, fixed, settings, log, renewals }, renewed)
    }

    /// Reads the file again whenever that is asked for.
    pub(super) async fn follow(mut self, mut asked: watch::Receiver<u64>) -> Infallible {
        while asked.changed().await.is_ok() {
            let Some(path) = self.args.policy.config.clone() else {
                info!("SIGHUP: there is no file to read again, since none is given by --config");
                continue;
            };
            match self.read().await {
                Ok((settings, built)) => self.take(&path, settings, built).await,
                Err(error) => warn!("{error}; the run goes on as it was"),
            }
        }
        std::future::pending().await
    }

    /// Reads and makes sure, beside the run: a disk may be slow.
    async fn read(&self) -> Result<(Settings, Built), BadUsage> {
        let (args, given) = (self.args.clone(), self.log.given().clone());
        let reading = tokio::task::spawn_blocking(move || {
            let settings = args.settings(&given)?;
            let built = settings.build()?;
            Ok((settings, built))
        });
        reading.await.unwrap_or_else(|error| Err(BadUsage(error.to_string())))
    }

    async fn take(&mut self, path: &Path, new: Settings, built: Built) {
        let path = path.display();
        for key in self.fixed.differences(&new.fixed) {
            warn!("{path}: {key} has changed, which takes effect at the next start");
        }
        let new = Settings { fixed: self.fixed.clone(), ..new };
        let changes = self.settings.changes(&new);
        if changes.is_empty() {
            info!("{path} was read again: nothing that a run can take up has changed");
            return;
        }
        if let Err(error) = self.log_as(&new) {
            warn!("the log stays as it was: {error}");
        }
        info!("{path} was read again: {}", changes.join("; "));
        let Built { policy, shadows, nodes: _ } = built;
        let (now, next) = (&self.settings.chosen, &new.chosen);
        let same =
            (&now.policy, now.variant, &now.params) == (&next.policy, next.variant, &next.params);
        let view = new.policy_view(&policy.params());
        let policy = (!same).then_some(policy);
        let limiter = new.chosen.limiter;
        let renewal = Renewal { policy, limiter, shadows, view, changes };
        // Nobody takes it once the run is on its way to its end.
        drop(self.renewals.send(renewal).await);
        self.settings = new;
    }

    /// What has not changed in the file stays as it is, though somebody may have ordered it otherwise.
    fn log_as(&self, new: &Settings) -> Result<(), reload::Error> {
        if self.settings.log_level != new.log_level {
            self.log.set_filter(&new.log_level)?;
        }
        if self.settings.log_format != new.log_format {
            self.log.set_format(new.log_format)?;
        }
        Ok(())
    }
}
