//! Ctrl-C and SIGTERM: the bench abandons its work and still removes what it created.

use std::future::Future;

use paceline_api::signals::Ending;
use tokio::sync::watch;

/// The bench was asked to end before it was done.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted;

/// Whether the bench was asked to end.
#[derive(Clone, Debug)]
pub(crate) struct Stop(watch::Receiver<Option<Ending>>);

impl Stop {
    pub(crate) fn new(ending: watch::Receiver<Option<Ending>>) -> Self {
        Self(ending)
    }

    /// Fails once the bench was asked to end.
    pub(crate) fn check(&self) -> Result<(), Interrupted> {
        if self.0.borrow().is_some() { Err(Interrupted) } else { Ok(()) }
    }

    /// Does `work`, and abandons it when the bench is asked to end.
    pub(crate) async fn unless<T>(
        &self,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        let mut ending = self.0.clone();
        tokio::select! {
            Ok(_) = ending.wait_for(Option::is_some) => Err(Interrupted.into()),
            done = work => done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_is_abandoned_when_asked_to_end() {
        let (sender, ending) = watch::channel(None);
        let stop = Stop::new(ending);
        assert_eq!(stop.unless(async { Ok(7) }).await.expect("not asked to end"), 7);
        sender.send_replace(Some(Ending::Interrupted));
        let never = std::future::pending::<anyhow::Result<()>>();
        let error = stop.unless(never).await.expect_err("asked to end");
        assert!(error.is::<Interrupted>());
        assert!(stop.check().is_err());
    }
}
