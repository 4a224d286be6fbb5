//! Errors of the state on disk.

use std::io;
use std::path::PathBuf;

use paceline_api::state_folder::StateError;
use paceline_runtime::processes::Mark;

use super::super::record::FORMAT;

/// Why the state cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OriginalsError {
    /// The state folder cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// A file or folder could not be read or written.
    #[error("cannot read or write {}", .0.display())]
    Io(PathBuf, #[source] io::Error),
    /// Another allocator runs on this engine.
    #[error("another allocator works on this engine ({holder}; lock {})", .lock.display())]
    Held {
        /// Its process, machine, start and purpose.
        holder: String,
        /// The lock's file.
        lock: PathBuf,
    },
    /// Another allocator manages the container.
    #[error("another allocator works on this container ({holder}; lock {})", .claim.display())]
    Claimed {
        /// Its process, machine, start and purpose.
        holder: String,
        /// The lock's file.
        claim: PathBuf,
    },
    /// Another allocator, which has ended, has left limits behind.
    #[error(
        "an earlier allocator has left limits in this container; run `paceline restore --state-dir {}`, \
         or remove {} if that folder is lost", .state.display(), .claim.display()
    )]
    LeftBehind {
        /// Its state folder.
        state: PathBuf,
        /// The lock's file.
        claim: PathBuf,
    },
    /// The allocator of another user, which has ended, has left limits on a job outside containers.
    #[error(
        "an allocator of user {} has left limits on this job; run `paceline restore` as that user, with the \
         `--runtime` of that run, or remove {} if the limits are right", .0.uid, .0.path.display()
    )]
    Marked(Mark),
    /// The file was written by a newer version.
    #[error("cannot use {}: it has format {format}; this version reads up to {}", .path.display(), FORMAT)]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// The file is another container's.
    #[error("cannot use {}: it holds the original limits of container {id:?}", .path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// The container.
        id: String,
    },
    /// The file has another content.
    #[error("cannot use {}: it does not hold a container's original limits", .0.display())]
    Malformed(PathBuf, #[source] serde_json::Error),
    /// The file could not be read at the start of this run.
    #[error("{why}; remove {} if the container's limits are right", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}

impl OriginalsError {
    /// Whether only one container is concerned, which cannot be managed until a person acts.
    pub fn is_of_one_container(&self) -> bool {
        match self {
            Self::Claimed { .. }
            | Self::LeftBehind { .. }
            | Self::Marked(..)
            | Self::Newer { .. }
            | Self::Other { .. }
            | Self::Malformed(..)
            | Self::Unreadable { .. } => true,
            Self::State(_) | Self::Io(..) | Self::Held { .. } => false,
        }
    }
}
