//! The status of one agent, asked for once a second.

use std::sync::Arc;
use std::time::Duration;

use paceline_api::live::Snapshot;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use super::agent_client::{AgentClient, AskError, Connection};

/// How often an agent is asked.
const ASK_INTERVAL: Duration = Duration::from_secs(1);
/// How often an agent that does not answer is asked.
const ASK_BACKOFF: Duration = Duration::from_secs(5);

/// The latest answer of one agent. Dropping this ends the requests.
#[derive(Debug)]
pub(super) struct Feed {
    latest: watch::Receiver<LatestAnswer>,
    _task: AbortOnDropHandle<()>,
}

/// The latest answer of an agent.
#[derive(Clone, Debug, Default)]
pub(super) struct LatestAnswer {
    /// Its last snapshot.
    pub(super) snapshot: Option<Arc<Snapshot>>,
    /// Why it does not answer now.
    pub(super) trouble: Option<String>,
}

impl Feed {
    /// Asks the agent of the machine called `name` until this is dropped.
    #[expect(clippy::disallowed_methods, reason = "the handle ends the task when it is dropped")]
    pub(super) fn follow(client: AgentClient, name: String, address: String) -> Self {
        let (sender, latest) = watch::channel(LatestAnswer::default());
        let task = tokio::spawn(async move {
            let mut connection = None;
            loop {
                let began = Instant::now();
                let answer = status(&client, &mut connection, &name, &address).await;
                let pace = if answer.is_ok() { ASK_INTERVAL } else { ASK_BACKOFF };
                sender.send_modify(|latest| match answer {
                    Ok(snapshot) => {
                        *latest =
                            LatestAnswer { snapshot: Some(Arc::new(snapshot)), trouble: None };
                    }
                    Err(error) => latest.trouble = Some(error.to_string()),
                });
                sleep_until(began + pace).await;
            }
        });
        Self { latest, _task: AbortOnDropHandle::new(task) }
    }

    /// The latest answer so far.
    pub(super) fn latest(&self) -> LatestAnswer {
        self.latest.borrow().clone()
    }
}

/// Asks on the open connection. If that fails, it reconnects once.
async fn status(
    client: &AgentClient,
    connection: &mut Option<Connection>,
    name: &str,
    address: &str,
) -> Result<Snapshot, AskError> {
    if let Some(mut kept) = connection.take()
        && let Ok(snapshot) = client.status(&mut kept).await
    {
        *connection = Some(kept);
        return Ok(snapshot);
    }
    let mut fresh = client.connect(name, address).await?;
    let snapshot = client.status(&mut fresh).await?;
    *connection = Some(fresh);
    Ok(snapshot)
}
