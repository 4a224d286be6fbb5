//! Where a running allocator is asked and told.

use std::path::{Path, PathBuf};

use clap::Args;
use tracing::warn;

use crate::control::{self, Control, DEFAULT_PATH, Reply, Request};
use crate::exit::BadUsage;
use crate::live::Live;

/// The control socket.
#[derive(Clone, Debug, PartialEq, Args)]
pub(super) struct ControlArgs {
    /// The Unix socket by which the running allocator is asked and told
    /// [default: /run/paceline/control.sock]
    #[arg(long, env = "PACELINE_CONTROL", value_name = "PATH|none")]
    control: Option<PathBuf>,
}

impl ControlArgs {
    /// The same with the word of a file, which counts where nothing is given.
    pub(super) fn over(&self, file: Option<&PathBuf>) -> Self {
        Self { control: self.control.as_ref().or(file).cloned() }
    }

    /// What is given, in a word.
    pub(super) fn given(&self) -> Option<&Path> {
        self.control.as_deref()
    }

    /// The socket's path, unless there is to be none.
    pub(super) fn socket(&self) -> Option<PathBuf> {
        let path = self.control.clone().unwrap_or_else(|| DEFAULT_PATH.into());
        (path.as_os_str() != "none").then_some(path)
    }

    /// Serves there for as long as the result lives. A path that was asked for and cannot be had is
    /// an error. The default path may be another run's, such as a real one's beside a dry one: then
    /// there is a warning and no socket, since jobs are managed without one as well.
    pub(super) fn serve(&self, live: Live, audit: PathBuf) -> anyhow::Result<Option<Control>> {
        let Some(path) = self.socket() else { return Ok(None) };
        match control::serve(&path, live, audit) {
            Ok(control) => Ok(Some(control)),
            Err(error) if self.is_default() => {
                let error = anyhow::Error::from(error);
                warn!("{error:#}: this run takes no orders");
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whether nobody has asked for anything else.
    pub(super) fn is_default(&self) -> bool {
        self.control.as_ref().is_none_or(|path| path.as_os_str() == DEFAULT_PATH)
    }

    /// Asks the allocator that listens there.
    pub(super) async fn ask(&self, request: &Request) -> anyhow::Result<Reply> {
        let none = || BadUsage("--control none: without a socket nobody can be asked".to_owned());
        Ok(control::ask(&self.socket().ok_or_else(none)?, request).await?)
    }
}
