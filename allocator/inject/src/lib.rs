//! Puts Paceline's sidecar into manifests of Kubernetes, and takes it out again.
//!
//! Pure: text in, text out. Only the pods with the label `paceline.dev/enable: "true"` are changed,
//! and of their documents only the lines that belong to the sidecar: all others keep their bytes.
//! Injecting twice equals injecting once, and removing gives back the text from before.

mod cursor;
mod edit;
mod function;
mod keys;
mod kinds;
mod mark;
mod native;
mod pod;
mod problem;
mod remove;
mod scalar;
mod settings;
mod sidecar;
mod splice;
mod stray;
mod train_job;
mod transform;
mod tree;
mod value;
mod wrapped;

pub use function::failed_function;
pub use keys::ENABLE;
pub use problem::{Error, Object, Refusal};
pub use transform::{Change, Note, Outcome};
pub use tree::{MAX_BYTES, MAX_DEPTH, MAX_NODES, ReadError};

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Put the sidecar in. An injected pod is injected again, with these options.
    Inject,
    /// Take the sidecar out.
    Remove,
}

/// When a node fetches the sidecar's image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PullPolicy {
    /// Before each start.
    Always,
    /// If the node does not have it.
    #[default]
    IfNotPresent,
    /// Never.
    Never,
}

impl PullPolicy {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::Always, Self::IfNotPresent, Self::Never];

    /// The policy's name in a manifest.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::IfNotPresent => "IfNotPresent",
            Self::Never => "Never",
        }
    }
}

/// How the sidecar is put in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The sidecar's image.
    pub image: String,
    /// When a node fetches it.
    pub pull_policy: PullPolicy,
}

impl Default for Options {
    fn default() -> Self {
        let image = concat!("paceline/sidecar:", env!("CARGO_PKG_VERSION")).to_owned();
        Self { image, pull_policy: PullPolicy::default() }
    }
}

/// Changes a stream of manifests, YAML or JSON.
///
/// A `ResourceList` is the input of a kustomize function: its `functionConfig` may set the options
/// and the action, and its `results` name what was done.
///
/// # Errors
/// The stream is not YAML, exceeds a bound, or has a pod that opts in and cannot be changed. All such pods
/// are named.
pub fn transform(text: &str, action: Action, options: &Options) -> Result<Outcome, Error> {
    if text.len() > MAX_BYTES {
        return Err(ReadError::Long.into());
    }
    let (mark, body) = match text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    };
    let mut outcome = function::run(body, action, options)?;
    outcome.text.insert_str(0, mark);
    Ok(outcome)
}
