//! Grammars of independent lines with fixed shapes.

use super::draft::Draft;
use super::shape::Shape;
use super::{Grammar, Reading};
use crate::terminal::End;

/// A program's lines, by their shapes.
#[derive(Debug)]
pub(super) struct Table {
    name: &'static str,
    shapes: Vec<Shape>,
}

impl Table {
    /// Creates a grammar of `shapes`; the first match is used.
    pub(super) fn new(name: &'static str, shapes: impl Into<Vec<Shape>>) -> Self {
        Self { name, shapes: shapes.into() }
    }
}

impl Grammar for Table {
    fn name(&self) -> &'static str {
        self.name
    }

    fn starts(&self, byte: u8) -> bool {
        self.shapes.iter().any(|shape| shape.starts(byte))
    }

    fn goes_on(&self, byte: u8) -> bool {
        self.shapes.iter().any(|shape| shape.goes_on(byte))
    }

    fn read(&mut self, line: &str, _: End, draft: &mut Draft) -> Reading {
        let mut read = |shape: &Shape| Some((shape.is_known(), shape.read(line, draft)?));
        match self.shapes.iter().find_map(&mut read) {
            Some((true, _)) => {
                draft.clear();
                Reading::Known
            }
            // It is the description of a bar, which knows the counter and the rate, too.
            Some((false, after)) if after.ends_with(']') && after.contains("%|") => {
                draft.clear();
                Reading::Foreign
            }
            Some((false, _)) => Reading::Says,
            None => Reading::Foreign,
        }
    }
}
