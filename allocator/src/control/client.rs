//! Asking a running allocator.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::{Reply, Request};

/// How long an answer may take: longer than the allocator gives its driver.
const PATIENCE: Duration = Duration::from_secs(40);
/// No answer is longer: a snapshot of some ten thousand jobs.
const LONGEST: u64 = 32 * 1024 * 1024;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody listens.
    #[error("no allocator answers at {}: is `paceline run` at work?", .0.display())]
    Nobody(PathBuf),
    /// The socket is not this user's.
    #[error(
        "only root, and the user who runs the allocator, may talk to it ({} is closed to others)",
        .0.display()
    )]
    Closed(PathBuf),
    /// Talking to it failed.
    #[error("the allocator at {} breaks off", .0.display())]
    Io(PathBuf, #[source] io::Error),
    /// It answers something else.
    #[error("what answers at {} is no allocator of this version", .0.display())]
    Strange(PathBuf, #[source] serde_json::Error),
}

/// Asks the allocator that listens at `path`.
pub async fn ask(path: &Path, request: &Request) -> Result<Reply, AskError> {
    let failed = |error| AskError::Io(path.to_owned(), error);
    let stream = UnixStream::connect(path).await.map_err(|error| {
        use io::ErrorKind::{ConnectionRefused, NotFound, PermissionDenied};
        if [NotFound, ConnectionRefused].contains(&error.kind()) {
            AskError::Nobody(path.to_owned())
        } else if error.kind() == PermissionDenied {
            AskError::Closed(path.to_owned())
        } else {
            failed(error)
        }
    })?;
    let answer = tokio::time::timeout(PATIENCE, exchange(stream, request)).await;
    let answer = answer.unwrap_or_else(|late| Err(late.into())).map_err(failed)?;
    serde_json::from_slice(&answer).map_err(|error| AskError::Strange(path.to_owned(), error))
}

async fn exchange(mut stream: UnixStream, request: &Request) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    let mut answer = Vec::new();
    stream.take(LONGEST).read_to_end(&mut answer).await?;
    Ok(answer)
}
