//! How far moves have come, on the services that are moved: whichever machine the next manager runs
//! on, the engine tells it.

use bollard::models::ServiceSpec;

use super::Services;
use crate::cluster::twin::MOVE;
use crate::migrate::Move;
use crate::migrate::journal::{Journal, JournalError, Pending, Unreadable, record, recorded};

impl Journal for Services {
    async fn write(&self, plan: &Move) -> Result<(), JournalError> {
        let record = record(plan).map_err(failed)?;
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
        let services = match self.engine.labelled(MOVE).await {
            Ok(services) => services,
            Err(error) => {
                pending.errors.push(failed(error));
                return pending;
            }
        };
        for spec in services.into_iter().filter_map(|service| service.spec) {
            let record = spec.labels.as_ref().and_then(|labels| labels.get(MOVE));
            match record.map(|record| recorded(record)) {
                Some(Ok(plan)) => pending.plans.push(plan),
                Some(Err(why)) => {
                    let name = spec.name.unwrap_or_default();
                    pending.errors.push(JournalError::Engine(match why {
                        Unreadable::Newer(format) => {
                            format!("a newer version moves service {name} (format {format})")
                        }
                        Unreadable::Malformed(error) => {
                            format!("the label {MOVE} of service {name} holds no move: {error}")
                        }
                    }));
                }
                None => {}
            }
        }
        pending
    }
}

fn failed(error: impl std::fmt::Display) -> JournalError {
    JournalError::Engine(error.to_string())
}
