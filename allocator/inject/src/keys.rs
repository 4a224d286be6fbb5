//! The names that Paceline and its users share.

/// The label that opts a pod in.
pub const ENABLE: &str = "paceline.dev/enable";
/// The same label, as containers have it.
pub(crate) const OLD_ENABLE: &str = "paceline.enable";
/// The annotation that marks what was injected.
pub(crate) const INJECTED: &str = "paceline.dev/injected";
/// The annotation that names the container of the job.
pub(crate) const CONTAINER: &str = "paceline.dev/container";
/// What all annotations begin with.
pub(crate) const PREFIX: &str = "paceline.dev/";
/// The name of the sidecar's container and of its volume.
pub(crate) const SIDECAR: &str = "paceline-sidecar";
/// Where the volume is mounted in the job's container.
pub(crate) const FOLDER: &str = "/paceline";
/// The sidecar's program there.
pub(crate) const PROGRAM: &str = "/paceline/paceline-sidecar";
/// Who owns the patch of a training job.
pub(crate) const MANAGER: &str = "paceline.dev/inject";
