//! The journal of moves, in labels of the moved services. So the next manager can read it on any
//! machine.

use bollard::models::ServiceSpec;
use paceline_node::migration::Move;
use paceline_node::migration::journal::{
    Journal, JournalError, Pending, Unreadable, record, recorded,
};

use super::Services;
use crate::replacement::MOVE;

impl Journal for Services {
    async fn write(&self, plan: &Move) -> Result<(), JournalError> {
        let record = record(plan).map_err(failed)?;
        let keep = |spec: &mut ServiceSpec| {
            spec.labels.get_or_insert_default().insert(MOVE.to_owned(), record.clone());
        };
        // Without the source's service there is nothing left to recover.
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
                            format!("a newer Paceline is moving service {name} (format {format})")
                        }
                        Unreadable::Malformed(error) => {
                            format!("invalid label {MOVE} of service {name}: {error}")
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
