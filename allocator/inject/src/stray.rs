//! Pod templates that opt in where no known kind has one.

use std::collections::BTreeSet;

use crate::cursor::{Cursor, MAX_SHOWN};
use crate::pod;
use crate::tree::{Content, Id, Tree};

/// The field of the first pod template of an object that opts in, or seems meant to, apart from
/// the `known` ones. It is empty for the object itself.
pub(crate) fn find(object: &Cursor<'_>, known: &BTreeSet<Id>) -> Option<String> {
    let mut search = Search { object, known, path: Vec::new() };
    search.enters(object.id).then(|| search.field())
}

/// A way through all parts of an object. It does not follow aliases: what they show stands
/// elsewhere in the same document. So it is as deep and as long as the text.
struct Search<'a> {
    object: &'a Cursor<'a>,
    known: &'a BTreeSet<Id>,
    path: Vec<Step<'a>>,
}

/// A step of the way.
enum Step<'a> {
    Key(&'a str),
    Item(usize),
}

impl<'a> Search<'a> {
    /// Whether a template is found at or below `id`. Then the path leads to it.
    fn enters(&mut self, id: Id) -> bool {
        if self.known.contains(&id) {
            return false;
        }
        let tree = self.object.tree;
        if is_pod(tree, id) && self.is_meant(id) {
            return true;
        }
        match &tree.node(id).content {
            Content::Map { entries, .. } => {
                entries.iter().any(|(key, value)| match tree.scalar(*key) {
                    Some(key) => self.goes(Step::Key(key), *value),
                    None => false,
                })
            }
            Content::List { items, .. } => {
                items.iter().enumerate().any(|(at, item)| self.goes(Step::Item(at), *item))
            }
            Content::Scalar { .. } | Content::Alias(_) => false,
        }
    }

    fn goes(&mut self, step: Step<'a>, id: Id) -> bool {
        self.path.push(step);
        let found = self.enters(id);
        if !found {
            self.path.pop();
        }
        found
    }

    fn is_meant(&self, id: Id) -> bool {
        let place = Cursor::root(self.object.tree, id);
        let Ok(Some(metadata)) = place.map("metadata") else { return false };
        // A label in a wrong form is meant, too.
        pod::opts_in(&metadata).unwrap_or(true)
            || pod::other_value(&metadata).is_some()
            || pod::seems_meant(&metadata, self.object)
    }

    fn field(&self) -> String {
        let mut field = String::new();
        for step in &self.path {
            match step {
                Step::Key(key) => {
                    field.push_str(if field.is_empty() { "" } else { "." });
                    field.extend(key.chars().filter(|c| !c.is_control()).take(MAX_SHOWN));
                }
                Step::Item(at) => field.extend(["[", &at.to_string(), "]"]),
            }
        }
        field
    }
}

/// Whether this has the form of a pod or of its template: metadata beside containers, or beside a
/// specification with some.
fn is_pod(tree: &Tree, id: Id) -> bool {
    // A key that stands twice is there.
    let has = |map, key| !matches!(tree.entry(map, key), Ok(None));
    let has_containers = |map| has(map, "containers") || has(map, "container");
    if !has(id, "metadata") {
        return false;
    }
    let spec = tree.entry(id, "spec").ok().flatten();
    has_containers(id) || spec.is_some_and(|(_, spec)| has_containers(tree.target(spec)))
}
