//! Moves between the nodes of one machine, by either means.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Containers;
use crate::migrate::journal::Folder;
use crate::migrate::moves::Carriage;
use crate::migrate::{Ended, Means, Move, Settings, Tell, Trip, carry};

/// The containers of one engine, and how they are moved.
#[derive(Debug)]
pub struct OneMachine {
    carrier: Containers,
    journal: Folder,
    settings: Settings,
}

impl OneMachine {
    /// Moves containers so; `journal` is where that is written down.
    pub fn new(carrier: Containers, journal: Folder, settings: Settings) -> Self {
        Self { carrier, journal, settings }
    }

    /// By what they are moved.
    pub fn means(&self) -> Means {
        self.settings.by
    }

    /// Changes the CPUs of a container that runs on.
    async fn repin(&self, plan: Move) -> Trip {
        let ended = match self.carrier.set_cpus(&plan).await {
            Ok(()) => Ended::Moved,
            Err(error) => Ended::Stayed(format!("{:#}", anyhow::Error::from(error))),
        };
        Trip { plan, ended, successor: None, saving: None, cost: Some(0.0) }
    }
}

impl Carriage for OneMachine {
    async fn carry(&self, plan: Move, ending: CancellationToken, tell: Tell) -> Trip {
        match self.settings.by {
            Means::Restart => {
                let within = Duration::from_secs_f64(self.settings.within);
                carry(plan, &self.carrier, &self.journal, (within, &ending), &tell).await
            }
            Means::Cpuset => self.repin(plan).await,
        }
    }
}
