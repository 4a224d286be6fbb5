//! Changes of a tree, and the same changes of its text.
//!
//! Only the text around a change is written, so that everything else keeps its bytes. The new text
//! is then read again and compared with the changed tree: a layout that is not understood is an
//! error, and never a manifest that says something else.

use crate::splice::{Layout, Splice};
use crate::tree::{Content, Id, Tree};
use crate::value::Value;

/// One change.
#[derive(Clone, Debug)]
pub(crate) enum Edit {
    /// A new last entry.
    Entry { map: Id, key: &'static str, value: Value },
    /// A value in the place of null.
    Null { map: Id, key: &'static str, value: Value },
    /// New first items.
    First { list: Id, items: Vec<Value> },
    /// A new last item.
    Last { list: Id, item: Value },
    /// These items go.
    NoItems { list: Id, items: Vec<Id> },
    /// These entries go: all of one mapping in one edit, because of the commas between them.
    NoEntries { map: Id, keys: Vec<&'static str> },
    /// Null again, as it was written.
    NullAgain { map: Id, key: &'static str, text: String },
}

/// Changes the text as `edits` say.
pub(crate) fn apply(text: &str, mut tree: Tree, edits: &[Edit]) -> Result<String, Layout> {
    let mut splice = Splice::new(text);
    for edit in edits {
        splice.add(&tree, edit)?;
    }
    let changed = splice.finish();
    for edit in edits {
        tree.change(edit);
    }
    let read = Tree::read_changed(&changed).map_err(|_| Layout)?;
    if read.says_the_same(&tree) { Ok(changed) } else { Err(Layout) }
}

impl Tree {
    fn change(&mut self, edit: &Edit) {
        match edit {
            Edit::Entry { map, key, value } => {
                let name = Content::Scalar { text: (*key).to_owned(), is_text: true };
                let pair = (self.add(name), value.add_to(self));
                self.with_entries(*map, |entries| entries.push(pair));
            }
            Edit::Null { map, key, value } => {
                let value = value.add_to(self);
                self.replace(*map, key, value);
            }
            Edit::NullAgain { map, key, text } => {
                let null = self.add(Content::Scalar { text: text.clone(), is_text: false });
                self.replace(*map, key, null);
            }
            Edit::First { list, items } => {
                let new: Vec<Id> = items.iter().map(|item| item.add_to(self)).collect();
                self.with_items(*list, |items| drop(items.splice(0..0, new)));
            }
            Edit::Last { list, item } => {
                let item = item.add_to(self);
                self.with_items(*list, |items| items.push(item));
            }
            Edit::NoItems { list, items: gone } => {
                self.with_items(*list, |items| items.retain(|item| !gone.contains(item)));
            }
            Edit::NoEntries { map, keys } => {
                let find = |key: &&str| Some(self.entry(*map, key).ok()??.0);
                let gone: Vec<Id> = keys.iter().filter_map(find).collect();
                self.with_entries(*map, |entries| entries.retain(|(name, _)| !gone.contains(name)));
            }
        }
    }

    fn replace(&mut self, map: Id, key: &str, value: Id) {
        let Ok(Some((name, _))) = self.entry(map, key) else { return };
        self.with_entries(map, |entries| {
            let entry = entries.iter_mut().find(|(other, _)| *other == name);
            if let Some(entry) = entry {
                entry.1 = value;
            }
        });
    }

    fn with_entries(&mut self, map: Id, change: impl FnOnce(&mut Vec<(Id, Id)>)) {
        if let Some(Content::Map { entries, .. }) = self.node_mut(map).map(|node| &mut node.content)
        {
            change(entries);
        }
    }

    fn with_items(&mut self, list: Id, change: impl FnOnce(&mut Vec<Id>)) {
        if let Some(Content::List { items, .. }) = self.node_mut(list).map(|node| &mut node.content)
        {
            change(items);
        }
    }
}
