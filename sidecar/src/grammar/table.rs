//! Grammars whose lines each stand for themselves and have fixed shapes.

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
    /// Lines of any of `shapes`; the first that fits is taken.
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

    fn read(&mut self, line: &str, _: End, draft: &mut Draft) -> Reading {
        if self.shapes.iter().any(|shape| shape.read(line, draft).is_some()) {
            Reading::Says
        } else {
            Reading::Foreign
        }
    }
}
