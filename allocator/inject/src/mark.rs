//! The mark of what was injected: which lists were made, so that they go with the last of their
//! items.

use crate::cursor::Cursor;
use crate::edit::Edit;
use crate::keys::INJECTED;
use crate::problem::Problem;
use crate::value::{Value, map, text};

/// Edits that put something in, and a record of the fields that they make.
#[derive(Debug, Default)]
pub(crate) struct Insertion {
    pub(crate) edits: Vec<Edit>,
    made: Vec<String>,
}

impl Insertion {
    /// Adds an item to the list at `key`, which is made if needed.
    pub(crate) fn item(
        &mut self,
        parent: &Cursor<'_>,
        key: &'static str,
        item: Value,
    ) -> Result<(), Problem> {
        if let Some(list) = parent.get(key)? {
            parent.list(key)?;
            self.edits.push(Edit::Last { list: list.own()?, item });
            return Ok(());
        }
        self.make(parent, key, Value::List(vec![item]))
    }

    fn make(
        &mut self,
        parent: &Cursor<'_>,
        key: &'static str,
        value: Value,
    ) -> Result<(), Problem> {
        let map = parent.own()?;
        if let Some(null) = parent.null(key)? {
            self.made.push(format!("{key}:{null}"));
            self.edits.push(Edit::Null { map, key, value });
        } else {
            self.made.push(format!("+{key}"));
            self.edits.push(Edit::Entry { map, key, value });
        }
        Ok(())
    }

    /// Marks the pod, as the last step.
    pub(crate) fn mark(mut self, form: &str, metadata: &Cursor<'_>) -> Result<Vec<Edit>, Problem> {
        let mark = |made: &[String]| {
            text(
                std::iter::once(form)
                    .chain(made.iter().map(String::as_str))
                    .collect::<Vec<_>>()
                    .join(" "),
            )
        };
        if let Some(annotations) = metadata.map("annotations")? {
            let map = annotations.own()?;
            self.edits.push(Edit::Entry { map, key: INJECTED, value: mark(&self.made) });
            return Ok(self.edits);
        }
        self.make(metadata, "annotations", map([]))?;
        if let Some(Edit::Entry { value, .. } | Edit::Null { value, .. }) = self.edits.last_mut() {
            *value = map([(INJECTED, mark(&self.made))]);
        }
        Ok(self.edits)
    }
}

/// The fields that an injection has made, by its mark.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made<'a>(pub(crate) &'a str);

impl Made<'_> {
    /// The edit that takes away the field `key`, from which everything goes; `None` if it stays.
    pub(crate) fn undo(
        self,
        parent: &Cursor<'_>,
        key: &'static str,
    ) -> Result<Option<Edit>, Problem> {
        let map = parent.own()?;
        for word in self.0.split(' ') {
            if word.strip_prefix('+') == Some(key) {
                return Ok(Some(Edit::NoEntries { map, keys: vec![key] }));
            }
            if let Some((made, null)) = word.split_once(':')
                && made == key
            {
                return Ok(Some(Edit::NullAgain { map, key, text: null.to_owned() }));
            }
        }
        Ok(None)
    }
}
