//! What one agent says, asked once a second.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use super::ask::{AskError, Asker, Line};
use crate::live::Snapshot;

/// How often an agent is asked.
const PACE: Duration = Duration::from_secs(1);
/// How often one is tried that does not answer.
const RETRY: Duration = Duration::from_secs(5);

/// The latest of one agent. It is asked no more once this is dropped.
#[derive(Debug)]
pub(super) struct Feed {
    heard: watch::Receiver<Heard>,
    _task: AbortOnDropHandle<()>,
}

/// What was heard of an agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    /// What it said last.
    pub(super) snapshot: Option<Arc<Snapshot>>,
    /// Why it does not answer now.
    pub(super) trouble: Option<String>,
}

impl Feed {
    /// Asks the agent of the machine called `name`.
    #[expect(clippy::disallowed_methods, reason = "the handle ends the task when it is dropped")]
    pub(super) fn follow(asker: Asker, name: String, address: String) -> Self {
        let (told, heard) = watch::channel(Heard::default());
        let task = tokio::spawn(async move {
            let mut line = None;
            loop {
                let began = Instant::now();
                let answer = status(&asker, &mut line, &name, &address).await;
                let pace = if answer.is_ok() { PACE } else { RETRY };
                told.send_modify(|heard| match answer {
                    Ok(snapshot) => {
                        *heard = Heard { snapshot: Some(Arc::new(snapshot)), trouble: None };
                    }
                    Err(error) => heard.trouble = Some(error.to_string()),
                });
                sleep_until(began + pace).await;
            }
        });
        Self { heard, _task: AbortOnDropHandle::new(task) }
    }

    /// What was heard so far.
    pub(super) fn heard(&self) -> Heard {
        self.heard.borrow().clone()
    }
}

/// Asks on the connection that there is; one that has broken since is made anew, once.
async fn status(
    asker: &Asker,
    line: &mut Option<Line>,
    name: &str,
    address: &str,
) -> Result<Snapshot, AskError> {
    if let Some(mut kept) = line.take()
        && let Ok(snapshot) = asker.status(&mut kept).await
    {
        *line = Some(kept);
        return Ok(snapshot);
    }
    let mut anew = asker.connect(name, address).await?;
    let snapshot = asker.status(&mut anew).await?;
    *line = Some(anew);
    Ok(snapshot)
}
