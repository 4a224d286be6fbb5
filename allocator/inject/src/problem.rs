//! Why a document is refused.

use std::fmt;

use crate::tree::ReadError;

/// The place of an object in its stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// The document's number, from 1.
    pub document: usize,
    /// The number in a list, from 1; `None` for a document of its own.
    pub item: Option<usize>,
    /// The kind, for example `Job`.
    pub kind: String,
    /// The name, or the beginning of a generated one.
    pub name: String,
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "document {}, ", self.document)?;
        if let Some(item) = self.item {
            write!(f, "item {item}, ")?;
        }
        write!(f, "{} {:?}", self.kind, self.name)
    }
}

/// Why one object is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {action} {object}, {field}: {cause}; {advice}")]
pub struct Refusal {
    /// What was to be done: `inject` or `restore`.
    pub action: &'static str,
    /// Where.
    pub object: Object,
    /// The field, from the object's root.
    pub field: String,
    /// What is wrong.
    pub cause: String,
    /// What to do.
    pub advice: String,
}

/// Why a stream is refused. Nothing of it is changed then.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It was not read.
    #[error("cannot read the manifests: {0}")]
    Read(#[from] ReadError),
    /// These objects are refused.
    #[error("{}", lines(.0))]
    Refused(Vec<Refusal>),
}

fn lines(refusals: &[Refusal]) -> String {
    refusals.iter().map(Refusal::to_string).collect::<Vec<_>>().join("\n")
}

/// What is wrong with a field of an object that is known elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) field: String,
    pub(crate) cause: String,
    pub(crate) advice: String,
}

impl Problem {
    pub(crate) fn new(
        field: impl Into<String>,
        cause: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { field: field.into(), cause: cause.into(), advice: advice.into() }
    }

    pub(crate) fn of(self, action: &'static str, object: &Object) -> Refusal {
        let Self { field, cause, advice } = self;
        Refusal { action, object: object.clone(), field, cause, advice }
    }
}
