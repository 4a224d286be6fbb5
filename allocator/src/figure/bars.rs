//! Bars that lie beside each other in groups.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::palette::{GREY, INK};
use super::plane::{Canvas, Plane};
use super::{Axis, TEXT};

/// Twice the width of a narrow screen.
const WIDTH: u32 = 960;
/// The height of one bar with its distance to the next.
const ROW: u32 = 44;
/// The part of a row that its bar takes.
const THICK: f64 = 0.78;
/// Between two groups there is room for so much of a bar.
const GAP: f64 = 0.6;
/// What is above and below the bars.
const AROUND: u32 = 116;
/// The mean width of a letter of a name.
const LETTER: usize = 17;
/// Names are cut to so many letters.
const LONGEST: usize = 20;

/// Bars that belong together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) bars: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bar {
    /// Where it ends; without one there is only its text.
    pub(crate) value: Option<f64>,
    pub(crate) colour: RGBColor,
    /// What stands behind its end.
    pub(crate) text: String,
}

/// Draws the groups one below the other along `x`, and an upright line at `mark`.
pub(crate) fn draw(
    x: &Axis,
    groups: &[Group],
    mark: Option<f64>,
    alt: &str,
) -> anyhow::Result<String> {
    let bars: usize = groups.iter().map(|group| group.bars.len()).sum();
    let rows = f64::from(u32::try_from(bars)?) + GAP * f64::from(u32::try_from(groups.len())?);
    let longest = groups.iter().map(|group| group.name.chars().count()).max().unwrap_or(0);
    let left = u32::try_from(40 + LETTER * longest.min(LONGEST))?;
    let height = u32::try_from(bars)? * ROW + u32::try_from(groups.len())? * ROW * 3 / 5 + AROUND;
    let y = Axis { title: String::new(), marks: vec![-rows, 0.0], above: 0.0, log: false };
    Plane { size: (WIDTH, height), left, x, y: &y, named: true }.draw(alt, |canvas| {
        let mut top = -GAP / 2.0;
        for group in groups {
            top = group.draw(canvas, top)? - GAP;
        }
        if let Some(mark) = mark {
            let line = [(mark, -rows), (mark, 0.0)];
            canvas.draw_series(LineSeries::new(line, INK.stroke_width(3)))?;
        }
        Ok(())
    })
}

impl Group {
    /// Draws the group from `top` on downwards; says where it ends.
    fn draw(&self, canvas: &mut Canvas<'_>, top: f64) -> anyhow::Result<f64> {
        let font = ("sans-serif", TEXT).into_font();
        let left = font.color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
        let right = font.color(&INK).pos(Pos::new(HPos::Right, VPos::Center));
        let mut row = top;
        for bar in &self.bars {
            let end = bar.value.unwrap_or(0.0);
            let middle = row - THICK / 2.0;
            let corners = [(0.0, row), (end, row - THICK)];
            canvas.draw_series([Rectangle::new(corners, bar.colour.filled())])?;
            let style = if bar.value.is_some() { left.clone() } else { left.color(&GREY) };
            let text = Text::new(bar.text.clone(), (12, 0), style);
            canvas.draw_series([EmptyElement::at((end, middle)) + text])?;
            row -= 1.0;
        }
        let name = Text::new(shortened(&self.name), (-16, 0), right);
        canvas.draw_series([EmptyElement::at((0.0, f64::midpoint(top, row))) + name])?;
        Ok(row)
    }
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= LONGEST {
        return name.to_owned();
    }
    name.chars().take(LONGEST - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::palette::colour;

    #[test]
    fn every_bar_has_its_text_and_every_group_its_name_once() {
        let bar = |value, text: &str| Bar { value, colour: colour(0), text: text.to_owned() };
        let group = |name: &str, bars| Group { name: name.to_owned(), bars };
        let long = "a-name-of-more-than-twenty-letters";
        let groups = [
            group("vae", vec![bar(Some(3.0), "3 s"), bar(None, "not done")]),
            group(long, vec![bar(Some(1.0), "1 s"), bar(Some(2.0), "2 s")]),
        ];
        let x = Axis::even("seconds", 0.0, 4.0);
        let svg = draw(&x, &groups, Some(1.5), "Bars").unwrap();
        for text in ["3 s", "not done", "1 s", "2 s", "vae", "a-name-of-more-than…"] {
            assert_eq!(svg.matches(text).count(), 1, "{text}: {svg}");
        }
        assert_eq!(svg.matches("<rect").count(), 4, "{svg}");
    }
}
