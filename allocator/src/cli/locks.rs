//! The folder of the machine's locks.

use std::path::{Path, PathBuf};

use paceline_node::limits::originals::LOCKS;
use paceline_runtime::processes::folder::Place;

/// The variable that overrides the folder. It is for tests: allocators with different folders do not
/// notice each other.
pub(super) const VARIABLE: &str = "PACELINE_LOCKS";

/// The folder of the machine's locks.
pub(super) fn folder() -> PathBuf {
    given().unwrap_or_else(|| {
        let user = rustix::process::geteuid();
        if user.is_root() {
            return PathBuf::from(LOCKS);
        }
        // Without root there are only the user's own jobs.
        Place::own(user.as_raw()).path().join(format!("locks-{}", user.as_raw()))
    })
}

/// The folder that the environment sets.
pub(super) fn given() -> Option<PathBuf> {
    let given = std::env::var_os(VARIABLE).filter(|it| !it.is_empty()).map(PathBuf::from)?;
    Some(std::path::absolute(&given).unwrap_or(given))
}

/// The folder to mount in the allocator's container. It is not the folder of the locks itself, which
/// only root may look at.
pub(super) fn mounted() -> PathBuf {
    given().or_else(|| Path::new(LOCKS).parent().map(Path::to_owned)).unwrap_or_default()
}
