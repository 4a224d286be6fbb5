//! The control socket of a running allocator.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Arg, Args};
use paceline_api::usage::BadUsage;
use paceline_runtime::processes::folder::Place;
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

    /// The same for an allocator of one user's own jobs, which may not use the default path.
    pub(super) fn of_user(&self) -> Self {
        Self { control: self.control.clone().or_else(|| Some(users_path())) }
    }

    /// Serves until the result is dropped. Members of `group` may connect, too. An explicit path that cannot be used is an error.
    /// The default path may belong to another run, for example a real one beside a dry one.
    /// Then this run continues with a warning and without a socket.
    pub(super) fn serve(
        &self,
        snapshots: Snapshots,
        audit: PathBuf,
        group: Option<&str>,
    ) -> anyhow::Result<Option<Control>> {
        let Some(path) = self.socket() else { return Ok(None) };
        match control::serve(&path, snapshots, audit) {
            Ok(control) => {
                group.map_or(Ok(()), |group| open_to(&path, group))?;
                Ok(Some(control))
            }
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
        let own = Some(users_path()).filter(|own| {
            self.control.is_none() && !rustix::process::geteuid().is_root() && own.exists()
        });
        Ok(control::ask(&own.or_else(|| self.socket()).ok_or_else(none)?, request).await?)
    }
}

/// The option `--listen` of a command whose page has another default address than that of `run`.
pub(super) fn listens_at(listen: Arg, default: &str) -> Arg {
    let help = format!(
        "The address of the page, the API and the metrics: `host:port`, `unix:/path.sock` or `none` \
         [default: {default}]"
    );
    let long =
        format!("{help}\n\nAn address that other machines can reach also needs a token and TLS.");
    listen.help(help).long_help(long)
}

/// The socket of an allocator of this user's own jobs.
fn users_path() -> PathBuf {
    let uid = rustix::process::geteuid().as_raw();
    Place::own(uid).path().with_file_name(format!("control-{uid}.sock"))
}

/// Lets members of a group connect. The socket is widened only after its group is set.
fn open_to(path: &Path, group: &str) -> anyhow::Result<()> {
    let id = group_id(group).ok_or_else(|| {
        BadUsage(format!("unknown group {group:?}: expected a name of /etc/group, or a number"))
    })?;
    std::os::unix::fs::chown(path, None, Some(id))
        .and_then(|()| std::fs::set_permissions(path, Permissions::from_mode(0o660)))
        .with_context(|| format!("cannot open {} to group {group}", path.display()))
}

fn group_id(group: &str) -> Option<u32> {
    group.parse().ok().or_else(|| {
        let groups = std::fs::read_to_string("/etc/group").ok()?;
        let mut named = groups.lines().filter_map(|line| {
            let mut fields = line.split(':');
            (fields.next()? == group).then(|| fields.nth(1))?
        });
        named.next()?.parse().ok()
    })
}
