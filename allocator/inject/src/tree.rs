//! YAML as a tree that knows the place of each part in its text.
//!
//! Aliases are kept as they are, so a file of nested aliases costs no more than its bytes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};

use crate::scalar;

/// The most bytes of one stream of manifests.
pub const MAX_BYTES: usize = 8 << 20;
/// The most scalars, lists and mappings of one stream.
pub const MAX_NODES: usize = 1 << 19;
/// The deepest nesting. Kubernetes' own types stay below 40.
pub const MAX_DEPTH: usize = 100;
/// How many merge keys (`<<`) may follow each other.
const MAX_MERGES: usize = 8;

/// A node's number in its tree.
pub(crate) type Id = usize;

/// A scalar, list, mapping or alias.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) content: Content,
    /// Its bytes in the text, without a comment after it.
    pub(crate) span: Range<usize>,
    /// How deep it is nested.
    pub(crate) depth: usize,
    /// The anchor's number; 0 without one.
    anchor: usize,
}

/// What a node is.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// A scalar; `is_text` is false where YAML may read a number, a boolean or null.
    Scalar { text: String, is_text: bool },
    /// A list: in brackets (`flow`), or with dashes.
    List { flow: bool, items: Vec<Id> },
    /// A mapping: in braces (`flow`), or a line for each key.
    Map { flow: bool, entries: Vec<(Id, Id)> },
    /// A reference to an anchor.
    Alias(usize),
}

/// The documents of one text.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    /// The nodes with an anchor, and whether an alias refers to it.
    anchors: BTreeMap<usize, (Id, bool)>,
    /// The root of each document.
    pub(crate) documents: Vec<Id>,
}

/// A text that is not read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The text is too long.
    #[error("the text is longer than {} MiB; inject fewer documents at a time", MAX_BYTES >> 20)]
    Long,
    /// There are too many parts.
    #[error("the text has more than {MAX_NODES} values; inject fewer documents at a time")]
    Many,
    /// Lists and mappings are nested too deeply.
    #[error("document {document}, line {line}: nested deeper than {MAX_DEPTH}; no manifest is")]
    Deep {
        /// The document's number, from 1.
        document: usize,
        /// The line, from 1.
        line: usize,
    },
    /// This is not YAML.
    #[error("document {document}, line {line}, column {column}: {reason}; correct the YAML there")]
    Syntax {
        /// The document's number, from 1.
        document: usize,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong.
        reason: String,
    },
}

/// A key that stands twice in one mapping.
#[derive(Debug)]
pub(crate) struct Twice;

impl Tree {
    /// Reads all documents of a text.
    pub(crate) fn read(text: &str) -> Result<Self, ReadError> {
        if text.len() > MAX_BYTES {
            Err(ReadError::Long)
        } else {
            Self::read_up_to(text, MAX_NODES)
        }
    }

    /// Reads a text that was made of one within the bounds: it is longer by the sidecars.
    pub(crate) fn read_changed(text: &str) -> Result<Self, ReadError> {
        Self::read_up_to(text, usize::MAX)
    }

    fn read_up_to(text: &str, most: usize) -> Result<Self, ReadError> {
        let tree = Self::default();
        let mut reader = Reader { text, bytes: offsets(text), tree, open: vec![], most };
        let mut parser = Parser::new_from_str(text);
        while let Some(event) = parser.next_event() {
            let (event, span) = event.map_err(|error| reader.syntax(&error))?;
            reader.event(event, span)?;
        }
        Ok(reader.tree)
    }

    /// The node with this number.
    pub(crate) fn node(&self, id: Id) -> &Node {
        // Numbers come from this tree alone.
        self.nodes.get(id).unwrap_or(&NOTHING)
    }

    pub(crate) fn node_mut(&mut self, id: Id) -> Option<&mut Node> {
        self.nodes.get_mut(id)
    }

    /// Adds a node that stands nowhere in the text.
    pub(crate) fn add(&mut self, content: Content) -> Id {
        self.nodes.push(Node { content, span: 0..0, depth: 0, anchor: 0 });
        self.nodes.len() - 1
    }

    /// The node itself, or the one that an alias refers to.
    pub(crate) fn target(&self, id: Id) -> Id {
        let Content::Alias(anchor) = self.node(id).content else { return id };
        self.anchors.get(&anchor).map_or(id, |(target, _)| *target)
    }

    /// Whether other places show this node as well: a change of it would change them too.
    pub(crate) fn is_shared(&self, id: Id) -> bool {
        let node = self.node(id);
        matches!(node.content, Content::Alias(_))
            || self.anchors.get(&node.anchor).is_some_and(|(_, used)| *used)
    }

    /// The key's and the value's node, as the mapping itself has them.
    pub(crate) fn entry(&self, map: Id, key: &str) -> Result<Option<(Id, Id)>, Twice> {
        let Content::Map { entries, .. } = &self.node(map).content else { return Ok(None) };
        let mut found = entries.iter().filter(|(name, _)| self.scalar(*name) == Some(key));
        match (found.next(), found.next()) {
            (_, Some(_)) => Err(Twice),
            (first, None) => Ok(first.copied()),
        }
    }

    /// The value of a key, also by merge keys; and whether it is the mapping's own.
    pub(crate) fn get(&self, map: Id, key: &str) -> Result<Option<(Id, bool)>, Twice> {
        self.get_merged(map, key, 0)
    }

    fn get_merged(&self, map: Id, key: &str, merges: usize) -> Result<Option<(Id, bool)>, Twice> {
        let map = self.target(map);
        if let Some((_, value)) = self.entry(map, key)? {
            return Ok(Some((value, merges == 0)));
        }
        let Some((_, merged)) = self.entry(map, "<<")?.filter(|_| merges < MAX_MERGES) else {
            return Ok(None);
        };
        let merged = self.target(merged);
        let sources = self.items(merged).unwrap_or(std::slice::from_ref(&merged));
        for source in sources.iter().take(MAX_MERGES) {
            if let Some((value, _)) = self.get_merged(*source, key, merges + 1)? {
                return Ok(Some((value, false)));
            }
        }
        Ok(None)
    }

    /// The text of a scalar.
    pub(crate) fn scalar(&self, id: Id) -> Option<&str> {
        let Content::Scalar { text, .. } = &self.node(self.target(id)).content else { return None };
        Some(text)
    }

    /// The text of a scalar that is a string also for Kubernetes.
    pub(crate) fn text(&self, id: Id) -> Option<&str> {
        let content = &self.node(self.target(id)).content;
        let Content::Scalar { text, is_text: true } = content else { return None };
        Some(text)
    }

    /// Whether the value is null.
    pub(crate) fn is_null(&self, id: Id) -> bool {
        let content = &self.node(id).content;
        matches!(content, Content::Scalar { text, is_text: false } if scalar::is_null(text))
    }

    /// The items of a list.
    pub(crate) fn items(&self, id: Id) -> Option<&[Id]> {
        let Content::List { items, .. } = &self.node(self.target(id)).content else { return None };
        Some(items)
    }

    /// The entries of a mapping.
    pub(crate) fn entries(&self, id: Id) -> Option<&[(Id, Id)]> {
        let Content::Map { entries, .. } = &self.node(self.target(id)).content else { return None };
        Some(entries)
    }

    /// Whether two trees say the same. How scalars are quoted does not matter.
    pub(crate) fn says_the_same(&self, other: &Self) -> bool {
        let mut pairs = self.documents.iter().zip(&other.documents);
        self.documents.len() == other.documents.len()
            && pairs.all(|(ours, theirs)| self.equals(*ours, other, *theirs))
    }

    fn equals(&self, ours: Id, other: &Self, theirs: Id) -> bool {
        let (one, two) = (self.node(ours), other.node(theirs));
        let content = match (&one.content, &two.content) {
            (Content::Scalar { text, is_text }, Content::Scalar { text: b, is_text: also }) => {
                text == b && is_text == also
            }
            (Content::Alias(anchor), Content::Alias(b)) => anchor == b,
            (Content::List { items, .. }, Content::List { items: b, .. }) => {
                items.len() == b.len()
                    && items.iter().zip(b).all(|(x, y)| self.equals(*x, other, *y))
            }
            (Content::Map { entries, .. }, Content::Map { entries: b, .. }) => {
                let mut pairs = entries.iter().zip(b);
                entries.len() == b.len()
                    && pairs
                        .all(|(x, y)| self.equals(x.0, other, y.0) && self.equals(x.1, other, y.1))
            }
            _ => false,
        };
        content && one.anchor == two.anchor
    }
}

/// What a number that no tree has stands for.
const NOTHING: Node = Node { content: Content::Alias(0), span: 0..0, depth: 0, anchor: 0 };

/// The byte of each character, where they differ.
fn offsets(text: &str) -> Option<Vec<usize>> {
    (!text.is_ascii()).then(|| text.char_indices().map(|(at, _)| at).collect())
}

/// A list or mapping whose end has not been read.
struct Open {
    start: usize,
    anchor: usize,
    is_map: bool,
    children: Vec<Id>,
}

struct Reader<'a> {
    text: &'a str,
    bytes: Option<Vec<usize>>,
    tree: Tree,
    open: Vec<Open>,
    /// The most nodes.
    most: usize,
}

impl Reader<'_> {
    fn byte(&self, character: usize) -> usize {
        match &self.bytes {
            Some(bytes) => bytes.get(character).copied().unwrap_or(self.text.len()),
            None => character.min(self.text.len()),
        }
    }

    fn document(&self) -> usize {
        self.tree.documents.len() + 1
    }

    fn syntax(&self, error: &ScanError) -> ReadError {
        let (line, column) = (error.marker().line(), error.marker().col() + 1);
        let reason = error.info().chars().filter(|c| !c.is_control()).collect();
        ReadError::Syntax { document: self.document(), line, column, reason }
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), ReadError> {
        let (start, end) = (self.byte(span.start.index()), self.byte(span.end.index()));
        match event {
            Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _) => {
                if self.open.len() >= MAX_DEPTH {
                    let line = span.start.line();
                    return Err(ReadError::Deep { document: self.document(), line });
                }
                let is_map = matches!(event, Event::MappingStart(..));
                self.open.push(Open { start, anchor, is_map, children: vec![] });
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(start, end)?,
            Event::Scalar(text, style, anchor, tag) => {
                let content =
                    Content::Scalar { is_text: is_text(&text, style, tag), text: text.into() };
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                let end = if is_block { self.end_of_lines(start, end) } else { end };
                self.push(content, start..end, anchor)?;
            }
            Event::Alias(anchor) => {
                if let Some((_, used)) = self.tree.anchors.get_mut(&anchor) {
                    *used = true;
                }
                self.push(Content::Alias(anchor), start..end, 0)?;
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => {}
        }
        Ok(())
    }

    /// The end of the last line of a scalar of several lines: its line break.
    fn end_of_lines(&self, start: usize, end: usize) -> usize {
        let before = self.text.get(..end).unwrap_or_default().trim_end_matches([' ', '\t']);
        if before.ends_with('\n') { (before.len() - 1).max(start.min(end)) } else { end }
    }

    fn close(&mut self, start: usize, end: usize) -> Result<(), ReadError> {
        let Some(Open { start: first, anchor, is_map, children }) = self.open.pop() else {
            return Ok(());
        };
        let closing = if is_map { '}' } else { ']' };
        let rest = self.text.get(start..).unwrap_or_default();
        let flow = end > start && rest.starts_with(closing);
        let end = match children.last() {
            _ if flow => start + 1,
            Some(last) => self.tree.node(*last).span.end.max(first),
            None => end,
        };
        let content = if is_map {
            let pairs = children.chunks_exact(2);
            let entries = pairs.filter_map(|pair| Some((*pair.first()?, *pair.get(1)?))).collect();
            Content::Map { flow, entries }
        } else {
            Content::List { flow, items: children }
        };
        self.push(content, first..end, anchor)
    }

    fn push(
        &mut self,
        content: Content,
        span: Range<usize>,
        anchor: usize,
    ) -> Result<(), ReadError> {
        if self.tree.nodes.len() >= self.most {
            return Err(ReadError::Many);
        }
        let id = self.tree.nodes.len();
        self.tree.nodes.push(Node { content, span, depth: self.open.len(), anchor });
        if anchor != 0 {
            self.tree.anchors.insert(anchor, (id, false));
        }
        match self.open.last_mut() {
            Some(open) => open.children.push(id),
            None => self.tree.documents.push(id),
        }
        Ok(())
    }
}

/// Whether a scalar is a string for every reader of YAML.
fn is_text(text: &str, style: ScalarStyle, tag: Option<Cow<'_, Tag>>) -> bool {
    match tag {
        Some(tag) => tag.suffix == "str" || tag.suffix.is_empty(),
        None => style != ScalarStyle::Plain || scalar::is_plain_text(text),
    }
}
