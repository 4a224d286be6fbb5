use std::future::Future;
use std::time::Duration;

/// How long a test waits for anything, unless it asks for more: enough for a busy machine with other
/// tests. Normally nothing takes as long.
pub const WAIT_TIMEOUT: Duration = Duration::from_mins(2);

/// The factor of all waits, from `PACELINE_TEST_PATIENCE`: an emulated machine is slower.
pub(crate) fn times_longer() -> u32 {
    let times = std::env::var("PACELINE_TEST_PATIENCE").ok().and_then(|times| times.parse().ok());
    times.unwrap_or(1)
}

/// Repeats `look` until it returns a value; fails with `what` if it never does.
pub async fn until<T, F>(what: &str, look: impl FnMut() -> F) -> anyhow::Result<T>
where
    F: Future<Output = anyhow::Result<Option<T>>>,
{
    until_within(WAIT_TIMEOUT, what, look).await
}

/// The same, with a timeout of its own.
pub async fn until_within<T, F>(
    timeout: Duration,
    what: &str,
    mut look: impl FnMut() -> F,
) -> anyhow::Result<T>
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
    match tokio::time::timeout(timeout * times_longer(), waiting).await {
        Ok(seen) => seen,
        Err(_) => anyhow::bail!("timed out waiting until: {what}"),
    }
}
