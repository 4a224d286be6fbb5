//! Replaces parts of a text, in the style that is around them.

use std::cmp::Reverse;
use std::ops::Range;

use crate::edit::Edit;
use crate::tree::{Content, Id, Tree};
use crate::value::Value;

/// The lines are laid out in an unusual way, so the text is not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout;

/// One replacement.
struct Part {
    range: Range<usize>,
    text: String,
    /// Of several at one place, the deepest comes first.
    depth: usize,
}

/// The replacements of one text.
pub(crate) struct Splice<'a> {
    text: &'a str,
    line_break: &'static str,
    parts: Vec<Part>,
}

impl<'a> Splice<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let is_windows = text.split_once('\n').is_some_and(|(first, _)| first.ends_with('\r'));
        Self { text, line_break: if is_windows { "\r\n" } else { "\n" }, parts: vec![] }
    }

    /// Adds the replacements for one edit of the text's tree.
    pub(crate) fn add(&mut self, tree: &Tree, edit: &Edit) -> Result<(), Layout> {
        match edit {
            Edit::Entry { map, key, value } => self.add_entry(tree, *map, key, value),
            Edit::Null { map, key, value } => self.fill(tree, *map, key, value),
            Edit::First { list, items } => self.add_first(tree, *list, items),
            Edit::Last { list, item } => self.add_last(tree, *list, item),
            Edit::NoItems { list, items } => self.remove_items(tree, *list, items),
            Edit::NoEntries { map, keys } => self.remove_entries(tree, *map, keys),
            Edit::NullAgain { map, key, text } => self.empty(tree, *map, key, text),
        }
    }

    /// The new text.
    pub(crate) fn finish(mut self) -> String {
        self.parts.sort_by_key(|part| (part.range.start, Reverse(part.depth)));
        let mut text = String::with_capacity(self.text.len());
        let mut at = 0;
        for Part { range, text: new, .. } in self.parts {
            text.push_str(self.text.get(at..range.start).unwrap_or_default());
            text.push_str(&new);
            at = at.max(range.end);
        }
        text.push_str(self.text.get(at..).unwrap_or_default());
        // The last line of the text has no break, also if others were behind it.
        if !self.text.ends_with('\n') && text.ends_with('\n') {
            let kept = text.trim_end_matches('\n').trim_end_matches('\r').len();
            text.truncate(kept);
        }
        text
    }

    fn put(&mut self, range: Range<usize>, text: String, depth: usize) {
        self.parts.push(Part { range, text, depth });
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// The start of the line of a place.
    fn line_start(&self, at: usize) -> usize {
        let before = self.text.get(..at).unwrap_or_default();
        before.rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// The place after the line of another place, and whether a line break is missing there.
    fn after_line(&self, at: usize) -> (usize, bool) {
        let rest = self.text.get(at..).unwrap_or_default();
        match rest.find('\n') {
            Some(newline) => (at + newline + 1, false),
            None => (self.text.len(), true),
        }
    }

    /// The column of a place where a part of a block begins; only spaces and dashes may be before
    /// it.
    fn column(&self, at: usize) -> Result<usize, Layout> {
        let start = self.line_start(at);
        let before = self.text.get(start..at).ok_or(Layout)?;
        let is_lead = before.bytes().all(|byte| byte == b' ' || byte == b'-');
        if is_lead { Ok(at - start) } else { Err(Layout) }
    }

    /// The place of the dash of an item.
    fn dash(&self, tree: &Tree, item: Id) -> Result<usize, Layout> {
        let start = tree.node(item).span.start;
        let before = self.text.get(..start).ok_or(Layout)?.trim_end_matches(' ');
        if before.ends_with('-') { Ok(before.len() - 1) } else { Err(Layout) }
    }

    /// Inserts lines after the line of a place.
    fn put_lines(&mut self, after: usize, indent: usize, lines: &[String], depth: usize) {
        let (at, is_last) = self.after_line(after);
        let line_break = self.line_break;
        let lines = lines.iter().map(|line| {
            let indent = " ".repeat(indent);
            if is_last {
                format!("{line_break}{indent}{line}")
            } else {
                format!("{indent}{line}{line_break}")
            }
        });
        let text = lines.collect();
        self.put(at..at, text, depth);
    }

    fn add_entry(&mut self, tree: &Tree, map: Id, key: &str, value: &Value) -> Result<(), Layout> {
        let node = tree.node(map);
        let Content::Map { flow, entries } = &node.content else { return Err(Layout) };
        let Some((first, last)) = entries.first().zip(entries.last()) else {
            let inside = node.span.end.saturating_sub(1);
            let text = format!("{}: {}", crate::scalar::quoted(key), value.as_json());
            self.put(inside..inside, text, node.depth);
            return Ok(());
        };
        let end = self.entry_span(tree, *last)?.end;
        if *flow {
            let text = format!(", {}: {}", crate::scalar::quoted(key), value.as_json());
            self.put(end..end, text, node.depth);
        } else {
            let column = self.column(tree.node(first.0).span.start)?;
            self.put_lines(end, column, &value.as_entry(key), node.depth);
        }
        Ok(())
    }

    /// The place after the colon of a key.
    fn after_colon(&self, tree: &Tree, name: Id) -> Result<usize, Layout> {
        let end = tree.node(name).span.end;
        let rest = self.text.get(end..).ok_or(Layout)?;
        let spaces = rest.len() - rest.trim_start_matches(' ').len();
        if self.byte(end + spaces) == Some(b':') { Ok(end + spaces + 1) } else { Err(Layout) }
    }

    /// From a key to the end of its value; of an empty one to the colon.
    fn entry_span(&self, tree: &Tree, (name, value): (Id, Id)) -> Result<Range<usize>, Layout> {
        let (start, span) = (tree.node(name).span.start, &tree.node(value).span);
        let end = if span.is_empty() { self.after_colon(tree, name)? } else { span.end };
        Ok(start..end)
    }

    fn fill(&mut self, tree: &Tree, map: Id, key: &str, value: &Value) -> Result<(), Layout> {
        let (name, null) = entry(tree, map, key)?;
        let (after, span) = (self.after_colon(tree, name)?, tree.node(null).span.clone());
        let (range, space) = if span.is_empty() { (after..after, " ") } else { (span, "") };
        self.put(range, format!("{space}{}", value.as_json()), tree.node(null).depth);
        Ok(())
    }

    fn empty(&mut self, tree: &Tree, map: Id, key: &str, text: &str) -> Result<(), Layout> {
        let (name, value) = entry(tree, map, key)?;
        let (after, node) = (self.after_colon(tree, name)?, tree.node(value));
        if !matches!(
            node.content,
            Content::List { flow: true, .. } | Content::Map { flow: true, .. }
        ) {
            let space = if text.is_empty() { "" } else { " " };
            self.put(after..node.span.end, format!("{space}{text}"), node.depth);
        } else if text.is_empty() {
            self.put(after..node.span.end, String::new(), node.depth);
        } else {
            self.put(node.span.clone(), text.to_owned(), node.depth);
        }
        Ok(())
    }

    fn add_first(&mut self, tree: &Tree, list: Id, items: &[Value]) -> Result<(), Layout> {
        let node = tree.node(list);
        let Content::List { flow, items: old } = &node.content else { return Err(Layout) };
        let first = *old.first().ok_or(Layout)?;
        let at = tree.node(first).span.start;
        if *flow {
            let text = items.iter().flat_map(|item| [item.as_json(), ", ".to_owned()]).collect();
            self.put(at..at, text, node.depth);
            return Ok(());
        }
        let dash = self.dash(tree, first)?;
        let (start, column) = (self.line_start(dash), self.column(dash)?);
        if self.text.get(start..dash).is_none_or(|lead| lead.contains('-')) {
            return Err(Layout);
        }
        let lines = items.iter().flat_map(Value::as_item);
        let line_break = self.line_break;
        let text =
            lines.flat_map(|line| [" ".repeat(column), line, line_break.to_owned()]).collect();
        self.put(start..start, text, node.depth);
        Ok(())
    }

    fn add_last(&mut self, tree: &Tree, list: Id, item: &Value) -> Result<(), Layout> {
        let node = tree.node(list);
        let Content::List { flow, items } = &node.content else { return Err(Layout) };
        match (items.first().zip(items.last()), *flow) {
            (None, _) => {
                let inside = node.span.end.saturating_sub(1);
                self.put(inside..inside, item.as_json(), node.depth);
            }
            (Some((_, last)), true) => {
                let end = tree.node(*last).span.end;
                self.put(end..end, format!(", {}", item.as_json()), node.depth);
            }
            (Some((first, last)), false) => {
                let column = self.column(self.dash(tree, *first)?)?;
                self.put_lines(tree.node(*last).span.end, column, &item.as_item(), node.depth);
            }
        }
        Ok(())
    }

    fn remove_items(&mut self, tree: &Tree, list: Id, gone: &[Id]) -> Result<(), Layout> {
        let node = tree.node(list);
        let Content::List { flow, items } = &node.content else { return Err(Layout) };
        if *flow {
            let spans: Vec<_> = items.iter().map(|item| tree.node(*item).span.clone()).collect();
            let gone: Vec<bool> = items.iter().map(|item| gone.contains(item)).collect();
            self.remove_from_flow(&spans, &gone, node.depth);
            return Ok(());
        }
        if items.iter().all(|item| gone.contains(item)) {
            let start = self.dash(tree, *items.first().ok_or(Layout)?)?;
            return self.leave_empty(start..node.span.end, "[]", node.depth);
        }
        for item in gone {
            let dash = self.dash(tree, *item)?;
            self.remove_lines(dash, tree.node(*item).span.end, node.depth)?;
        }
        Ok(())
    }

    fn remove_entries(&mut self, tree: &Tree, map: Id, keys: &[&str]) -> Result<(), Layout> {
        let node = tree.node(map);
        let Content::Map { flow, entries } = &node.content else { return Err(Layout) };
        let names = keys.iter().map(|key| Ok(entry(tree, map, key)?.0));
        let names = names.collect::<Result<Vec<Id>, Layout>>()?;
        let spans = entries.iter().map(|pair| self.entry_span(tree, *pair));
        let spans = spans.collect::<Result<Vec<_>, Layout>>()?;
        let gone: Vec<bool> = entries.iter().map(|pair| names.contains(&pair.0)).collect();
        if *flow {
            self.remove_from_flow(&spans, &gone, node.depth);
            return Ok(());
        }
        if !gone.contains(&false) {
            return self.leave_empty(node.span.clone(), "{}", node.depth);
        }
        for (at, span) in spans.iter().enumerate().filter(|(at, _)| gone.get(*at) == Some(&true)) {
            let lead = self.text.get(self.line_start(span.start)..span.start).unwrap_or_default();
            let stays = gone.iter().skip(at).position(|gone| !gone);
            match stays.and_then(|stays| spans.get(at + stays)) {
                // The next key takes the place after the dash.
                Some(next) if lead.contains('-') => {
                    self.put(span.start..next.start, String::new(), node.depth);
                }
                _ => self.remove_lines(span.start, span.end, node.depth)?,
            }
        }
        Ok(())
    }

    /// Removes what is in braces or brackets, with its commas.
    fn remove_from_flow(&mut self, spans: &[Range<usize>], gone: &[bool], depth: usize) {
        let kept = gone.iter().rposition(|gone| !gone);
        for (at, span) in spans.iter().enumerate() {
            if gone.get(at) != Some(&true) {
                continue;
            }
            let next = spans.get(at + 1);
            let previous = at.checked_sub(1).and_then(|at| spans.get(at));
            let range = match (kept, previous, next) {
                // Something that stays follows: up to the next one.
                (Some(kept), _, Some(next)) if at < kept => span.start..next.start,
                (Some(_), Some(previous), _) => previous.end..span.end,
                (_, _, Some(next)) => span.start..next.start,
                _ => span.clone(),
            };
            self.put(range, String::new(), depth);
        }
    }

    /// Removes whole lines.
    fn remove_lines(&mut self, from: usize, to: usize, depth: usize) -> Result<(), Layout> {
        let start = self.line_start(from);
        if self.text.get(start..from).is_none_or(|lead| !lead.bytes().all(|byte| byte == b' ')) {
            return Err(Layout);
        }
        let (end, _) = self.after_line(to);
        self.put(start..end, String::new(), depth);
        Ok(())
    }

    /// Puts `[]` or `{}` in the place of a block from which everything goes.
    fn leave_empty(
        &mut self,
        block: Range<usize>,
        empty: &str,
        depth: usize,
    ) -> Result<(), Layout> {
        let before = self.text.get(..block.start).ok_or(Layout)?;
        let colon = before.trim_end_matches([' ', '\n', '\r']);
        if !colon.ends_with(':') {
            return Err(Layout);
        }
        self.put(colon.len()..block.end, format!(" {empty}"), depth);
        Ok(())
    }
}

fn entry(tree: &Tree, map: Id, key: &str) -> Result<(Id, Id), Layout> {
    tree.entry(map, key).ok().flatten().ok_or(Layout)
}
