//! What is put into a manifest.

use crate::scalar::{quoted, written};
use crate::tree::{Content, Id, Tree};

/// A value to insert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A string.
    Text(String),
    /// A number or boolean, as it is written.
    Plain(String),
    /// A list.
    List(Vec<Value>),
    /// A mapping, in this order.
    Map(Vec<(String, Value)>),
}

/// A string.
pub(crate) fn text(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}

/// A list of strings.
pub(crate) fn texts(texts: &[&str]) -> Value {
    Value::List(texts.iter().map(|one| text(*one)).collect())
}

/// A mapping.
pub(crate) fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Map(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// A boolean.
pub(crate) fn flag(is: bool) -> Value {
    Value::Plain(is.to_string())
}

impl Value {
    /// Adds it to a tree.
    pub(crate) fn add_to(&self, tree: &mut Tree) -> Id {
        let content = match self {
            Self::Text(text) => Content::Scalar { text: text.clone(), is_text: true },
            Self::Plain(text) => Content::Scalar { text: text.clone(), is_text: false },
            Self::List(items) => {
                let items = items.iter().map(|item| item.add_to(tree)).collect();
                Content::List { flow: false, items }
            }
            Self::Map(entries) => {
                let pair = |(key, value): &(String, Self)| {
                    let key = Content::Scalar { text: key.clone(), is_text: true };
                    (tree.add(key), value.add_to(tree))
                };
                Content::Map { flow: false, entries: entries.iter().map(pair).collect() }
            }
        };
        tree.add(content)
    }

    /// As JSON, in one line.
    pub(crate) fn as_json(&self) -> String {
        match self {
            Self::Text(text) => quoted(text),
            Self::Plain(text) => text.clone(),
            Self::List(items) => {
                let items: Vec<_> = items.iter().map(Self::as_json).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Map(entries) => {
                let pair =
                    |(key, value): &(String, Self)| format!("{}: {}", quoted(key), value.as_json());
                let entries: Vec<_> = entries.iter().map(pair).collect();
                format!("{{{}}}", entries.join(", "))
            }
        }
    }

    /// As lines of YAML for a list's item: the first after its dash, the others below.
    pub(crate) fn as_item(&self) -> Vec<String> {
        let Self::Map(entries) = self else { return vec![format!("- {}", self.in_one_line())] };
        let lines = entries.iter().flat_map(|(key, value)| value.as_entry(key));
        let lead = |at| if at == 0 { "- " } else { "  " };
        lines.enumerate().map(|(at, line)| format!("{}{line}", lead(at))).collect()
    }

    /// As lines of YAML for the entry of a mapping.
    pub(crate) fn as_entry(&self, key: &str) -> Vec<String> {
        let key = written(key);
        let below: Vec<String> = match self {
            Self::Map(entries) if !self.is_short() => {
                entries.iter().flat_map(|(key, value)| value.as_entry(key)).collect()
            }
            Self::List(items) if !self.is_short() => items.iter().flat_map(Self::as_item).collect(),
            Self::Text(_) | Self::Plain(_) | Self::List(_) | Self::Map(_) => {
                return vec![format!("{key}: {}", self.in_one_line())];
            }
        };
        let indented = below.into_iter().map(|line| format!("  {line}"));
        std::iter::once(format!("{key}:")).chain(indented).collect()
    }

    /// Whether it is a scalar, or a list of scalars.
    fn is_short(&self) -> bool {
        let is_scalar = |value: &Self| matches!(value, Self::Text(_) | Self::Plain(_));
        match self {
            Self::List(items) => items.iter().all(is_scalar),
            Self::Map(entries) => entries.is_empty(),
            Self::Text(_) | Self::Plain(_) => true,
        }
    }

    fn in_one_line(&self) -> String {
        match self {
            Self::Text(text) => written(text),
            Self::List(items) => {
                let items: Vec<_> = items.iter().map(Self::in_one_line).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Plain(_) | Self::Map(_) => self.as_json(),
        }
    }
}
