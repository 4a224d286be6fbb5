use std::future::Future;
use std::time::Duration;

/// How long anything may take that a test waits for, unless it says more: on a busy machine, beside other
/// tests. Where all goes well, nothing takes so long.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// So many times longer than on a real machine all may take, by `PACELINE_TEST_PATIENCE`.
pub(crate) fn times_longer() -> u32 {
    let times = std::env::var("PACELINE_TEST_PATIENCE").ok().and_then(|times| times.parse().ok());
    times.unwrap_or(1)
}

/// Waits until `look` sees what it looks for, and fails with `what` when it never does.
pub async fn until<T, F>(what: &str, look: impl FnMut() -> F) -> anyhow::Result<T>
where
    F: Future<Output = anyhow::Result<Option<T>>>,
{
    until_within(PATIENCE, what, look).await
}

/// The same, of what may take longer.
pub async fn until_within<T, F>(
    patience: Duration,
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
    match tokio::time::timeout(patience * times_longer(), waiting).await {
        Ok(seen) => seen,
        Err(_) => anyhow::bail!("it never came to this: {what}"),
    }
}
