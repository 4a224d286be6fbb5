//! Finds the pods of a stream, and changes those that opt in.

use std::collections::BTreeSet;
use std::fmt;

use crate::cursor::Cursor;
use crate::edit::{self, Edit};
use crate::keys::ENABLE;
use crate::kinds::{self, Shape};
use crate::pod::{self, Pod};
use crate::problem::{Error, Object, Problem, Refusal};
use crate::settings::Settings;
use crate::splice::Layout;
use crate::tree::{Id, Tree};
use crate::{Action, Options, native, remove, sidecar, stray, train_job, wrapped};

/// What was done to a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The new text.
    pub text: String,
    /// What was done, and what was found.
    pub notes: Vec<Note>,
}

/// What was done to one pod template, or what its owner should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Where.
    pub object: Object,
    /// The field of the pod template; empty for the object itself.
    pub field: String,
    /// What.
    pub change: Change,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The command of this container runs under the sidecar.
    Wrapped(String),
    /// A sidecar beside this container reads these files.
    Beside(String, Vec<String>),
    /// The sidecar is taken out.
    Removed,
    /// A sidecar was there that was not injected.
    Kept,
    /// It does not opt in, and seems meant to.
    NotOptedIn,
    /// Its label has this value, which is neither true nor false.
    OtherValue(String),
    /// It seems meant to opt in, and its kind is not known: what it is, and what to do.
    UnknownKind(String, &'static str),
    /// Nothing reads this annotation.
    Unknown(String),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.object)?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        match &self.change {
            Change::Wrapped(container) => {
                write!(f, "container {container:?} runs under the sidecar")
            }
            Change::Beside(container, files) => {
                write!(f, "a sidecar beside container {container:?} reads {}", files.join(", "))
            }
            Change::Removed => write!(f, "the sidecar is removed"),
            Change::Kept => write!(f, "it has a sidecar of its own, and is left as it is"),
            Change::NotOptedIn => {
                write!(f, "it lacks the label {ENABLE}: \"true\", and is left as it is")
            }
            Change::OtherValue(value) => {
                write!(f, "its label {ENABLE} is {value:?}, and it is left as it is; ")?;
                write!(f, "write \"true\" in quotes to opt in")
            }
            Change::UnknownKind(what, advice) => {
                write!(f, "pods of {what} are not known, and it is left as it is; {advice}")
            }
            Change::Unknown(key) => write!(f, "nothing reads the annotation {key}"),
        }
    }
}

impl Note {
    /// Whether it explains why a pod that seems meant was left as it is.
    pub fn is_reason(&self) -> bool {
        matches!(self.change, Change::OtherValue(_) | Change::UnknownKind(..))
    }

    /// Whether something was changed.
    pub fn is_change(&self) -> bool {
        matches!(self.change, Change::Wrapped(_) | Change::Beside(..) | Change::Removed)
    }
}

/// The text with the sidecar put in or taken out.
pub(crate) fn run(
    text: &str,
    tree: Tree,
    action: Action,
    options: &Options,
) -> Result<Outcome, Error> {
    match action {
        Action::Remove => pass(text, tree, Pass::Remove { only_opted_in: false }, options),
        Action::Inject => {
            // An earlier injection is replaced: options may have changed.
            let clean = pass(text, tree, Pass::Remove { only_opted_in: true }, options)?;
            let tree = Tree::read_changed(&clean.text)?;
            pass(&clean.text, tree, Pass::Inject, options)
        }
    }
}

/// One way through the stream.
#[derive(Clone, Copy)]
enum Pass {
    Inject,
    Remove { only_opted_in: bool },
}

impl Pass {
    fn word(self) -> &'static str {
        match self {
            Self::Inject => "inject",
            Self::Remove { .. } => "take the sidecar out of",
        }
    }
}

/// What one way through the stream collects.
struct Walk<'a> {
    pass: Pass,
    options: &'a Options,
    edits: Vec<Edit>,
    /// The object of each edit.
    owners: Vec<Object>,
    notes: Vec<Note>,
    refusals: Vec<Refusal>,
}

fn pass(text: &str, tree: Tree, pass: Pass, options: &Options) -> Result<Outcome, Error> {
    let mut walk =
        Walk { pass, options, edits: vec![], owners: vec![], notes: vec![], refusals: vec![] };
    for (at, root) in tree.documents.iter().enumerate() {
        walk.document(&Cursor::root(&tree, *root), at + 1, None);
    }
    let Walk { edits, owners, notes, refusals, .. } = walk;
    if !refusals.is_empty() {
        return Err(Error::Refused(refusals));
    }
    if edits.is_empty() {
        return Ok(Outcome { text: text.to_owned(), notes });
    }
    match edit::apply(text, tree, &edits) {
        Ok(text) => Ok(Outcome { text, notes }),
        Err(Layout) => {
            Err(Error::Refused(culprit(text, &edits, &owners, pass).into_iter().collect()))
        }
    }
}

/// The first object whose layout is not understood: that of the first edit that fails.
fn culprit(text: &str, edits: &[Edit], owners: &[Object], pass: Pass) -> Option<Refusal> {
    let fails = |count: &usize| {
        let edits = edits.get(..*count).unwrap_or_default();
        !Tree::read(text).is_ok_and(|tree| edit::apply(text, tree, edits).is_ok())
    };
    let counts: Vec<usize> = (1..=edits.len()).collect();
    let first = counts.partition_point(|count| !fails(count)).min(owners.len().saturating_sub(1));
    let advice = "write each field on a line of its own, for example by kubectl create --dry-run=client -o yaml";
    owners.get(first).map(|object| Refusal {
        action: pass.word(),
        object: object.clone(),
        field: "its lines".to_owned(),
        cause: "their layout is not understood".to_owned(),
        advice: advice.to_owned(),
    })
}

impl Walk<'_> {
    fn document(&mut self, root: &Cursor<'_>, document: usize, item: Option<usize>) {
        let object = object(root, document, item);
        let api_version = root.scalar("apiVersion").ok().flatten().unwrap_or_default();
        let done = match kinds::shape(api_version, &object.kind) {
            None => self.others(root, &object, &BTreeSet::new()),
            // A list in a list is not for Kubernetes.
            Some(Shape::Objects) if item.is_some() => self.others(root, &object, &BTreeSet::new()),
            Some(Shape::Objects) => root.list("items").map(|items| {
                for (at, one) in items.iter().enumerate() {
                    self.document(one, document, Some(at + 1));
                }
            }),
            Some(Shape::TrainJob) => self.train_job(root, &object),
            Some(Shape::Templates(fields)) => {
                kinds::templates(root, fields).and_then(|templates| {
                    for place in &templates {
                        if let Err(problem) = self.template(place, root, &object) {
                            self.refuse(problem, &object);
                        }
                    }
                    let known = templates.iter().map(|place| place.id).collect();
                    self.others(root, &object, &known)
                })
            }
        };
        if let Err(problem) = done {
            self.refuse(problem, &object);
        }
    }

    /// Names the first pod of an object that seems meant, and is not where this kind is known to have
    /// pods.
    fn others(
        &mut self,
        root: &Cursor<'_>,
        object: &Object,
        known: &BTreeSet<Id>,
    ) -> Result<(), Problem> {
        if !matches!(self.pass, Pass::Inject) {
            return Ok(());
        }
        let Some(field) = stray::find(root, known) else { return Ok(()) };
        // A key that stands twice hides the kind.
        let (kind, api_version) = (root.scalar("kind")?, root.scalar("apiVersion")?);
        let what = match (kind.unwrap_or_default(), plain(api_version.unwrap_or_default())) {
            ("", _) => "an object without a kind".to_owned(),
            (_, group) if group.is_empty() => format!("{} without an apiVersion", object.kind),
            (_, group) => format!("{} of {group}", object.kind),
        };
        let advice = if object.kind.ends_with("List") {
            "write a List of v1, or a document for each item"
        } else {
            "start its command by paceline-sidecar exec in its image"
        };
        self.note(object, &field, Change::UnknownKind(what, advice));
        Ok(())
    }

    fn refuse(&mut self, problem: Problem, object: &Object) {
        self.refusals.push(problem.of(self.pass.word(), object));
    }

    fn edit(&mut self, object: &Object, edits: Vec<Edit>) {
        self.owners.extend(edits.iter().map(|_| object.clone()));
        self.edits.extend(edits);
    }

    fn note(&mut self, object: &Object, field: &str, change: Change) {
        self.notes.push(Note { object: object.clone(), field: field.to_owned(), change });
    }

    fn template(
        &mut self,
        place: &Cursor<'_>,
        root: &Cursor<'_>,
        object: &Object,
    ) -> Result<(), Problem> {
        let Some(pod) = Pod::at(place)? else {
            let injects = !matches!(self.pass, Pass::Remove { .. });
            if injects && place.map("spec")?.is_some() && pod::is_opted_in_above(root) {
                self.note(object, &place.field, Change::NotOptedIn);
            }
            return Ok(());
        };
        if let Pass::Remove { only_opted_in } = self.pass {
            let mark = pod::mark(&pod.metadata)?;
            let Some(mark) =
                mark.filter(|_| !only_opted_in || pod::opts_in(&pod.metadata).unwrap_or(false))
            else {
                return Ok(());
            };
            self.edit(object, remove::from_pod(&pod, mark)?);
            self.note(object, &place.field, Change::Removed);
            return Ok(());
        }
        if !pod::opts_in(&pod.metadata)? {
            if let Some(value) = pod::other_value(&pod.metadata) {
                self.note(object, &place.field, Change::OtherValue(value));
            } else if pod::seems_meant(&pod.metadata, root) {
                self.note(object, &place.field, Change::NotOptedIn);
            }
            return Ok(());
        }
        if pod.has_own_sidecar()? {
            self.note(object, &place.field, Change::Kept);
            return Ok(());
        }
        let job = pod.job()?;
        // The name of a runtime is not that of the jobs it runs.
        let name = if object.kind.ends_with("TrainingRuntime") { "" } else { &object.name };
        let settings = Settings::read(&pod.metadata, name)?;
        sidecar::check(&pod, &job)?;
        let name = pod::name(&job).to_owned();
        let (edits, change) = if settings.files.is_empty() {
            (wrapped::edits(&pod, &job, &settings, self.options)?, Change::Wrapped(name))
        } else {
            let files = settings.files.iter().map(|file| file.path.clone()).collect();
            (native::edits(&pod, &job, &settings, self.options)?, Change::Beside(name, files))
        };
        self.edit(object, edits);
        self.note(object, &place.field, change);
        self.unknown(&settings, &place.field, object);
        Ok(())
    }

    fn train_job(&mut self, root: &Cursor<'_>, object: &Object) -> Result<(), Problem> {
        let Some(metadata) = root.map("metadata")? else { return Ok(()) };
        let opted_in = pod::opts_in(&metadata)?;
        if let Pass::Remove { only_opted_in } = self.pass {
            if let Some(mark) = pod::mark(&metadata)?.filter(|_| opted_in || !only_opted_in) {
                self.edit(object, remove::from_train_job(root, mark)?);
                self.note(object, "", Change::Removed);
            }
            return Ok(());
        }
        if opted_in {
            let settings = Settings::read(&metadata, &object.name)?;
            self.edit(object, train_job::edits(root, &settings, self.options)?);
            self.note(object, "", Change::Wrapped("node".to_owned()));
            self.unknown(&settings, "", object);
        } else if let Some(value) = pod::other_value(&metadata) {
            self.note(object, "", Change::OtherValue(value));
        }
        Ok(())
    }

    fn unknown(&mut self, settings: &Settings, field: &str, object: &Object) {
        for key in &settings.unknown {
            self.note(object, field, Change::Unknown(key.clone()));
        }
    }
}

fn object(root: &Cursor<'_>, document: usize, item: Option<usize>) -> Object {
    let kind = root.scalar("kind").ok().flatten().unwrap_or_default();
    let metadata = root.map("metadata").ok().flatten();
    let named = |key| metadata.as_ref().and_then(|metadata| metadata.scalar(key).ok().flatten());
    let name =
        named("name").or_else(|| named("generateName").map(|name| name.trim_end_matches('-')));
    Object { document, item, kind: plain(kind), name: plain(name.unwrap_or_default()) }
}

/// A name of an object as a message shows it.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(253).collect()
}
