use std::future::Future;
use std::time::Duration;

/// How long anything may take that a test waits for: as many times longer than on a real machine as
/// `PACELINE_TEST_PATIENCE` says.
pub(crate) fn patience() -> Duration {
    let times = std::env::var("PACELINE_TEST_PATIENCE").ok().and_then(|times| times.parse().ok());
    Duration::from_secs(45) * times.unwrap_or(1)
}

/// Waits until `look` sees what it looks for, and fails with `what` when it never does.
pub async fn until<T, F>(what: &str, mut look: impl FnMut() -> F) -> anyhow::Result<T>
where
    F: Future<Output = anyhow::Result<Option<T>>>,
{
    let waiting = async {
        loop {
            if let Some(seen) = look().await? {
                return anyhow::Ok(seen);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    match tokio::time::timeout(patience(), waiting).await {
        Ok(seen) => seen,
        Err(_) => anyhow::bail!("it never came to this: {what}"),
    }
}
