//! A place in a tree that knows its field.

use std::fmt;

use crate::problem::Problem;
use crate::tree::{Content, Id, Tree, Twice};

/// A value, its field, and whether only this field shows it.
#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    pub(crate) tree: &'a Tree,
    /// The value, not an alias of it.
    pub(crate) id: Id,
    /// The field, as in `spec.template.spec`.
    pub(crate) field: String,
    is_own: bool,
}

impl fmt::Debug for Cursor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.field)
    }
}

impl<'a> Cursor<'a> {
    /// The root of a document.
    pub(crate) fn root(tree: &'a Tree, id: Id) -> Self {
        Self { tree, id: tree.target(id), field: String::new(), is_own: !tree.is_shared(id) }
    }

    fn child(&self, id: Id, field: String, is_own: bool) -> Self {
        let is_own = self.is_own && is_own && !self.tree.is_shared(id);
        Self { tree: self.tree, id: self.tree.target(id), field, is_own }
    }

    /// The name of a field of this value.
    pub(crate) fn field_of(&self, key: &str) -> String {
        match (self.field.as_str(), key.contains(['.', '/'])) {
            ("", false) => key.to_owned(),
            (field, false) => format!("{field}.{key}"),
            (field, true) => format!("{field}[{key:?}]"),
        }
    }

    /// The value of a key; `None` where it is absent or null.
    pub(crate) fn get(&self, key: &str) -> Result<Option<Self>, Problem> {
        let found = self.tree.get(self.id, key).map_err(|Twice| self.twice(key))?;
        let value = found.map(|(id, is_own)| self.child(id, self.field_of(key), is_own));
        Ok(value.filter(|value| !self.tree.is_null(value.id)))
    }

    fn twice(&self, key: &str) -> Problem {
        Problem::new(self.field_of(key), "it stands here twice", "remove one of the two")
    }

    /// The mapping of a key; `None` where it is absent or null.
    pub(crate) fn map(&self, key: &str) -> Result<Option<Self>, Problem> {
        let value = self.get(key)?;
        value
            .map(|value| value.must_be("a mapping", |tree, id| tree.entries(id).is_some()))
            .transpose()
    }

    /// The items of a list; none where it is absent or null.
    pub(crate) fn list(&self, key: &str) -> Result<Vec<Self>, Problem> {
        let Some(list) = self.get(key)? else { return Ok(vec![]) };
        Ok(list.must_be("a list", |tree, id| tree.items(id).is_some())?.items())
    }

    /// The items of this list.
    pub(crate) fn items(&self) -> Vec<Self> {
        let items = self.tree.items(self.id).unwrap_or_default().iter().enumerate();
        let item = |(at, id): (usize, &Id)| self.child(*id, format!("{}[{at}]", self.field), true);
        items.map(item).collect()
    }

    /// The values of a mapping, by their keys.
    pub(crate) fn values(&self) -> Vec<(&'a str, Self)> {
        let entries = self.tree.entries(self.id).unwrap_or_default().iter();
        let value = |(key, value): &(Id, Id)| {
            let key = self.tree.scalar(*key)?;
            Some((key, self.child(*value, self.field_of(key), true)))
        };
        entries.filter_map(value).collect()
    }

    /// The text of a key; `None` where it is absent or null.
    pub(crate) fn text(&self, key: &str) -> Result<Option<&'a str>, Problem> {
        let Some(value) = self.get(key)? else { return Ok(None) };
        value.as_text().map(Some)
    }

    /// The scalar of a key, whatever its type.
    pub(crate) fn scalar(&self, key: &str) -> Result<Option<&'a str>, Problem> {
        Ok(self.get(key)?.and_then(|value| self.tree.scalar(value.id)))
    }

    /// This value, which must be a string.
    pub(crate) fn as_text(&self) -> Result<&'a str, Problem> {
        let cause = match (self.tree.text(self.id), self.tree.scalar(self.id)) {
            (Some(text), _) => return Ok(text),
            (None, Some(other)) => {
                let shown: String = other.chars().take(MAX_SHOWN).collect();
                return Err(Problem::new(
                    self.field.clone(),
                    format!("{shown} is not a string for Kubernetes"),
                    format!("write \"{shown}\" in quotes"),
                ));
            }
            (None, None) => "expected a string",
        };
        Err(Problem::new(self.field.clone(), cause, "write one, in quotes"))
    }

    fn must_be(self, what: &str, is: impl FnOnce(&Tree, Id) -> bool) -> Result<Self, Problem> {
        if is(self.tree, self.id) {
            Ok(self)
        } else {
            let cause = format!("expected {what}");
            Err(Problem::new(self.field, cause, "correct it: Kubernetes would refuse it as well"))
        }
    }

    /// This value, to be changed: it must not be behind an anchor or alias.
    pub(crate) fn own(&self) -> Result<Id, Problem> {
        if self.is_own {
            return Ok(self.id);
        }
        Err(Problem::new(
            self.field.clone(),
            "it is shared by a YAML anchor, alias or merge key",
            "write it out here, so that no other field changes with it",
        ))
    }

    /// Whether the key is there with null, and how that is written.
    pub(crate) fn null(&self, key: &str) -> Result<Option<String>, Problem> {
        let found = self.tree.get(self.id, key).map_err(|Twice| self.twice(key))?;
        let null = found.filter(|(id, _)| self.tree.is_null(*id));
        Ok(null.and_then(|(id, _)| self.tree.scalar(id)).map(str::to_owned))
    }

    /// Whether this is a list or mapping without anything in it.
    pub(crate) fn is_empty(&self) -> bool {
        match &self.tree.node(self.id).content {
            Content::List { items, .. } => items.is_empty(),
            Content::Map { entries, .. } => entries.is_empty(),
            Content::Scalar { .. } | Content::Alias(_) => false,
        }
    }
}

/// The most characters of a wrong value that an error shows.
pub(crate) const MAX_SHOWN: usize = 64;
