//! `install`: copies this program to a folder that another container can use.

use std::fs::{self, File, Permissions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::Failure;
use crate::own_program::own_program;

/// The name of the copy.
const NAME: &str = "paceline-sidecar";

pub(super) const EXAMPLES: &str = "\
Examples:
  paceline-sidecar install /shared                      for a volume that the job has, too
  /shared/paceline-sidecar exec -- python train.py      then, in the job's container";

/// The arguments of `install`.
#[derive(Clone, Debug, Args)]
pub(super) struct InstallArgs {
    /// An existing folder, for example a volume shared with the job
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Copies the program and prints the path of the copy.
pub(super) fn run(args: &InstallArgs) -> Result<ExitCode, Failure> {
    let folder = args.folder.display();
    let path = install(&args.folder).map_err(|error| {
        Failure::running(format!(
            "cannot install into {folder}: {error}; name an existing folder that can be written to"
        ))
    })?;
    writeln!(io::stdout(), "{}", path.display()).map_err(|error| {
        Failure::running(format!(
            "cannot write to standard output: {error}; the copy is {}",
            path.display()
        ))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Creates the copy atomically. An existing copy is replaced, even while it runs.
fn install(folder: &Path) -> io::Result<PathBuf> {
    // The running program, even if its file has been replaced since.
    let mut ours = File::open(own_program()?)?;
    // In containers, several processes may have the same number.
    let random = RandomState::new().build_hasher().finish();
    let new = folder.join(format!(".{NAME}-{random:x}"));
    let path = folder.join(NAME);
    let mut copy = File::create_new(&new)?;
    let copied = fill(&mut copy, &mut ours).and_then(|()| fs::rename(&new, &path));
    if copied.is_err() {
        drop(fs::remove_file(&new));
    }
    copied.map(|()| path)
}

/// Copies a program.
fn fill(copy: &mut File, program: &mut File) -> io::Result<()> {
    io::copy(program, copy)?;
    // Any user may run it, whatever the umask is.
    copy.set_permissions(Permissions::from_mode(0o755))?;
    copy.sync_all()
}
