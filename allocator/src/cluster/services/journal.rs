//! How far moves have come, on the services that are moved: whichever machine the next manager runs
//! on, the engine tells it.

use bollard::models::ServiceSpec;
use serde::{Deserialize, Serialize};

use super::Services;
use crate::cluster::twin::MOVE;
use crate::migrate::Move;
use crate::migrate::journal::{Journal, JournalError, Pending};

/// The version of the record's format.
const FORMAT: u32 = 1;

#[derive(Serialize)]
struct Written<'a> {
    format: u32,
    #[serde(flatten)]
    plan: &'a Move,
}

#[derive(Deserialize)]
struct Read {
    format: u32,
    #[serde(flatten)]
    plan: Move,
}

impl Journal for Services {
    async fn write(&self, plan: &Move) -> Result<(), JournalError> {
        let record = serde_json::to_string(&Written { format: FORMAT, plan }).map_err(failed)?;
        let keep = |spec: &mut ServiceSpec| {
            spec.labels.get_or_insert_default().insert(MOVE.to_owned(), record.clone());
        };
        // Once the source's service is gone nothing is left that could be lost.
        self.change(&plan.name, keep).await.map_err(failed)
    }

    async fn forget(&self, plan: &Move) -> Result<(), JournalError> {
        let forget = |spec: &mut ServiceSpec| {
            spec.labels.get_or_insert_default().remove(MOVE);
        };
        self.change(&plan.name, forget).await.map_err(failed)
    }

    async fn pending(&self) -> Pending {
        let mut pending = Pending::default();
        let services = match self.labelled(MOVE).await {
            Ok(services) => services,
            Err(error) => {
                pending.errors.push(failed(error));
                return pending;
            }
        };
        for service in services {
            let spec = service.spec.unwrap_or_default();
            let record = spec.labels.as_ref().and_then(|labels| labels.get(MOVE));
            match record.map(|record| serde_json::from_str::<Read>(record)) {
                Some(Ok(Read { format: FORMAT, plan })) => pending.plans.push(plan),
                Some(Ok(Read { format, .. })) => {
                    let name = spec.name.unwrap_or_default();
                    let why = format!("a newer version moves service {name} (format {format})");
                    pending.errors.push(JournalError::Engine(why));
                }
                Some(Err(error)) => pending.errors.push(failed(error)),
                None => {}
            }
        }
        pending
    }
}

fn failed(error: impl std::fmt::Display) -> JournalError {
    JournalError::Engine(error.to_string())
}
