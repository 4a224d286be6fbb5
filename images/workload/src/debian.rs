//! Fashion-MNIST from the Debian package of that name: for machines that reach a mirror of their
//! distribution and nothing else. Nothing is installed, so root is not needed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package.
pub(crate) const PACKAGE: &str = "dataset-fashion-mnist";
/// The folder of the package's files, relative to the root folder.
pub(crate) const FOLDER: &str = "usr/share/datasets/fashion-mnist";

/// The reason why the package could not be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PackageError {
    /// A command could not be run, or a file could not be moved.
    #[error("{what}: {cause}")]
    Io { what: String, cause: io::Error },
    /// A command failed.
    #[error("{command} failed: {message}")]
    Failed { command: String, message: String },
}

/// Fetches the package by `apt_get` and moves its files into a folder, with `scratch` to work in.
pub(crate) fn fetch(apt_get: &Path, scratch: &Path, into: &Path) -> Result<(), PackageError> {
    let package = download(apt_get, scratch)?;
    let unpacked = scratch.join("unpacked");
    run(Command::new("dpkg-deb").arg("-x").arg(package).arg(&unpacked))?;
    let folder = unpacked.join(FOLDER);
    let io = |cause| PackageError::Io { what: folder.display().to_string(), cause };
    for entry in fs::read_dir(&folder).map_err(io)? {
        let entry = entry.map_err(io)?;
        fs::rename(entry.path(), into.join(entry.file_name())).map_err(io)?;
    }
    Ok(())
}

/// Fetches the package's file. If the machine's package lists are missing or too old, new ones are
/// fetched and kept apart from them.
fn download(apt_get: &Path, scratch: &Path) -> Result<PathBuf, PackageError> {
    // As root, apt downloads as another user, who cannot write to a private folder.
    let apt = |options: &[String], arguments: &[&str]| {
        let mut command = Command::new(apt_get);
        command.current_dir(scratch).args(["-q", "-o", "APT::Sandbox::User=root"]);
        run(command.args(options).args(arguments))
    };
    let io = |cause| PackageError::Io { what: scratch.display().to_string(), cause };
    if apt(&[], &["download", PACKAGE]).is_err() {
        // apt creates the other folders itself.
        fs::create_dir_all(scratch.join("State/lists/partial")).map_err(io)?;
        let own = ["State", "Cache"].map(|kind| {
            let folder = scratch.join(kind);
            format!("-oDir::{kind}={}", folder.display())
        });
        apt(&own, &["update"])?;
        apt(&own, &["download", PACKAGE])?;
    }
    let files = fs::read_dir(scratch).map_err(io)?.filter_map(Result::ok).map(|file| file.path());
    let mut packages = files.filter(|path| path.extension().is_some_and(|end| end == "deb"));
    let none = || io(io::Error::new(io::ErrorKind::NotFound, "apt-get left no package"));
    packages.next().ok_or_else(none)
}

fn run(command: &mut Command) -> Result<(), PackageError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.env("LC_ALL", "C.UTF-8").output();
    let output = output.map_err(|cause| PackageError::Io { what: name.clone(), cause })?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Err(PackageError::Failed { command: name, message })
}
