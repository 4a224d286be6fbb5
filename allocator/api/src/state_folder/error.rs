use std::io;
use std::path::PathBuf;

/// Why a state folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// It cannot be opened or made.
    #[error("cannot use the state folder {}", .0.display())]
    Io(PathBuf, #[source] io::Error),
    /// It belongs to another user, who could change everything in it.
    #[error(
        "cannot use the state folder {}: it belongs to user {found}; \
         run chown {expected} on it, or choose another --state-dir",
        .path.display()
    )]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// Its owner.
        found: u32,
        /// The user to whom it must belong.
        expected: u32,
    },
    /// A link on the way to it belongs to another user.
    #[error(
        "cannot use the state folder {}: {} on the way to it is a link of user {owner}; \
         remove the link, or choose another --state-dir",
        .path.display(), .link.display()
    )]
    Link {
        /// The folder.
        path: PathBuf,
        /// The link.
        link: PathBuf,
        /// The owner of the link.
        owner: u32,
    },
    /// Other users may write into it, or it holds other files and may be read by others.
    #[error(
        "cannot use the state folder {} (mode {mode:04o}): {why}; \
         choose a folder of its own for --state-dir",
        .path.display()
    )]
    Shared {
        /// The folder.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
        /// What is shared.
        why: &'static str,
    },
    /// The environment variable for its owner.
    #[error("invalid PACELINE_STATE_OWNER {0:?}: expected the id of a user, for example 1000")]
    Owner(String),
}
