//! Grammars of independent lines with fixed shapes.

use paceline_lines::terminal::End;

use super::draft::Draft;
use super::shape::{Shape, Start};
use super::{Grammar, Reading};

/// A program's lines, by their shapes.
#[derive(Debug)]
pub(super) struct Table {
    name: &'static str,
    shapes: Vec<Shape>,
    /// How the lines of each shape start.
    starts: Vec<Start>,
}

impl Table {
    /// Creates a grammar of `shapes`; the first match is used.
    pub(super) fn new(name: &'static str, shapes: impl Into<Vec<Shape>>) -> Self {
        let shapes = shapes.into();
        let starts = shapes.iter().map(Shape::start).collect();
        Self { name, shapes, starts }
    }
}

impl Grammar for Table {
    fn name(&self) -> &'static str {
        self.name
    }

    fn starts(&self, byte: u8) -> bool {
        self.starts.iter().any(|start| start.may_be(byte))
    }

    fn goes_on(&self, byte: u8) -> bool {
        self.starts.iter().any(|start| start.may_go_on(byte))
    }

    fn read(&mut self, line: &str, _: End, draft: &mut Draft) -> Reading {
        let all = self.starts.iter().zip(&self.shapes);
        let mut alike = all.filter(|(start, _)| start.is_of(line.as_bytes()));
        match alike.find_map(|(_, shape)| Some((shape.is_known(), shape.read(line, draft)?))) {
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
