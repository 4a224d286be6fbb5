//! The control socket of a running allocator.

use std::path::{Path, PathBuf};

use clap::Args;
use paceline_api::usage::BadUsage;
use paceline_server::control::{self, Control, DEFAULT_PATH, Reply, Request};
use paceline_server::web::Snapshots;
use tracing::warn;

/// The control socket.
#[derive(Clone, Debug, PartialEq, Args)]
pub(super) struct ControlArgs {
    /// The Unix socket of the running allocator [default: /run/paceline/control.sock]
    #[arg(long, env = "PACELINE_CONTROL", value_name = "PATH|none")]
    control: Option<PathBuf>,
}

impl ControlArgs {
    /// The same with the value of a file as the default.
    pub(super) fn over(&self, file: Option<&PathBuf>) -> Self {
        Self { control: self.control.as_ref().or(file).cloned() }
    }

    /// The given value.
    pub(super) fn given(&self) -> Option<&Path> {
        self.control.as_deref()
    }

    /// The socket's path, or `None` if it is disabled.
    pub(super) fn socket(&self) -> Option<PathBuf> {
        let path = self.control.clone().unwrap_or_else(|| DEFAULT_PATH.into());
        (path.as_os_str() != "none").then_some(path)
    }

    /// Serves until the result is dropped. An explicit path that cannot be used is an error.
    /// The default path may belong to another run, for example a real one beside a dry one.
    /// Then this run continues with a warning and without a socket.
    pub(super) fn serve(
        &self,
        snapshots: Snapshots,
        audit: PathBuf,
    ) -> anyhow::Result<Option<Control>> {
        let Some(path) = self.socket() else { return Ok(None) };
        match control::serve(&path, snapshots, audit) {
            Ok(control) => Ok(Some(control)),
            Err(error) if self.is_default() => {
                let error = anyhow::Error::from(error);
                warn!("{error:#}; this run takes no orders");
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the path is the default.
    pub(super) fn is_default(&self) -> bool {
        self.control.as_ref().is_none_or(|path| path.as_os_str() == DEFAULT_PATH)
    }

    /// Sends a request to the allocator.
    pub(super) async fn ask(&self, request: &Request) -> anyhow::Result<Reply> {
        let none = || {
            BadUsage(
                "cannot ask an allocator with --control none: give the path of its socket"
                    .to_owned(),
            )
        };
        Ok(control::ask(&self.socket().ok_or_else(none)?, request).await?)
    }
}
