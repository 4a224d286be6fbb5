//! Putting this program where another container finds it.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use tempfile::NamedTempFile;

use super::Failure;

/// What the copy is called.
const NAME: &str = "paceline-sidecar";

/// The arguments of `install`.
#[derive(Clone, Debug, Args)]
pub(super) struct InstallArgs {
    /// A folder that is there, such as a volume that is shared with the job
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Copies the program and prints where the copy is.
pub(super) fn run(args: &InstallArgs) -> Result<ExitCode, Failure> {
    let folder = args.folder.display();
    let path = install(&args.folder)
        .map_err(|error| Failure::running(format!("install {folder}: {error}")))?;
    writeln!(io::stdout(), "{}", path.display())
        .map_err(|error| Failure::running(error.to_string()))?;
    Ok(ExitCode::SUCCESS)
}

/// The copy appears whole, and replaces one that runs.
fn install(folder: &Path) -> io::Result<PathBuf> {
    // What runs, even if its file has been replaced since.
    let mut ours = File::open("/proc/self/exe")?;
    let mut copy = NamedTempFile::with_prefix_in(format!(".{NAME}-"), folder)?;
    io::copy(&mut ours, &mut copy)?;
    // Whoever the job runs as may run it, whatever the umask is.
    copy.as_file().set_permissions(Permissions::from_mode(0o755))?;
    copy.as_file().sync_all()?;
    let path = folder.join(NAME);
    copy.persist(&path)?;
    Ok(path)
}
