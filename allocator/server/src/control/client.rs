//! The client of a running allocator.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::{Reply, Request};

/// How long an answer may take: longer than the allocator gives its controller.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(40);
/// How long the snapshot may take. An allocator has it ready.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest accepted answer, in bytes: a snapshot of some ten thousand jobs.
const MAX_ANSWER: u64 = 32 * 1024 * 1024;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No process listens on the socket.
    #[error("no allocator answers at {}: check that `paceline run` is running", .0.display())]
    NotRunning(PathBuf),
    /// This user may not open the socket.
    #[error(
            "cannot open {}: permission denied; ask as root or as the user who runs the allocator",
            .0.display()
        )]
    Denied(PathBuf),
    /// The allocator is there, and does not answer.
    #[error(
        "cannot ask the allocator at {}: no answer within {} s; look at its log, and start it again if it \
         hangs",
        .0.display(), .1.as_secs()
    )]
    Silent(PathBuf, Duration),
    /// The connection broke.
    #[error("cannot talk to the allocator at {}", .0.display())]
    Io(PathBuf, #[source] io::Error),
    /// The answer cannot be read.
    #[error("invalid answer at {}: expected an allocator of this version", .0.display())]
    Invalid(PathBuf, #[source] serde_json::Error),
}

/// Asks the allocator that listens at `path`.
pub async fn ask(path: &Path, request: &Request) -> Result<Reply, AskError> {
    let limit = match request {
        Request::Status => STATUS_TIMEOUT,
        Request::Order(_) | Request::Audit(_) => ANSWER_TIMEOUT,
    };
    let answer = tokio::time::timeout(limit, exchange(path, request)).await;
    let answer = answer.unwrap_or_else(|_| Err(AskError::Silent(path.to_owned(), limit)))?;
    serde_json::from_slice(&answer).map_err(|error| AskError::Invalid(path.to_owned(), error))
}

async fn exchange(path: &Path, request: &Request) -> Result<Vec<u8>, AskError> {
    let failed = |error| AskError::Io(path.to_owned(), error);
    // A hung allocator with many waiting clients takes no further one.
    let stream = UnixStream::connect(path).await.map_err(|error| {
        use io::ErrorKind::{ConnectionRefused, NotFound, PermissionDenied};
        if [NotFound, ConnectionRefused].contains(&error.kind()) {
            AskError::NotRunning(path.to_owned())
        } else if error.kind() == PermissionDenied {
            AskError::Denied(path.to_owned())
        } else {
            failed(error)
        }
    })?;
    talk(stream, request).await.map_err(failed)
}

async fn talk(mut stream: UnixStream, request: &Request) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER).read_to_end(&mut answer).await?;
    Ok(answer)
}
