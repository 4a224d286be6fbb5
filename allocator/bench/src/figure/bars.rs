//! Horizontal bars in groups.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::palette::{GREY, INK};
use super::plane::{Canvas, Plane};
use super::{Axis, TEXT};

/// Twice the width of a narrow screen.
const WIDTH: u32 = 960;
/// The height of one bar, including the gap to the next.
const ROW: u32 = 44;
/// The part of a row that its bar fills.
const THICK: f64 = 0.78;
/// The gap between two groups, in rows.
const GAP: f64 = 0.6;
/// The height of all that is above and below the bars.
const AROUND: u32 = 116;
/// The size of a ring.
const RING: i32 = 12;
/// The mean width of a letter of a name.
const LETTER: usize = 17;
/// Longer names are cut to this many letters.
const MAX_LABEL_LEN: usize = 20;

/// Bars that belong together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) bars: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bar {
    /// Where it ends; `None` draws its text only.
    pub(crate) value: Option<f64>,
    pub(crate) colour: RGBColor,
    /// Half the width of the interval around its end, drawn as a line to either side.
    pub(crate) half: Option<f64>,
    /// A value that it is compared with, drawn as a ring.
    pub(crate) ring: Option<f64>,
    /// The text after its end.
    pub(crate) text: String,
}

impl Bar {
    /// A bar without an interval or a ring.
    pub(crate) fn new(value: Option<f64>, colour: RGBColor, text: String) -> Self {
        Self { value, colour, half: None, ring: None, text }
    }

    /// How far it reaches, including its interval and its ring.
    pub(crate) fn reach(&self) -> f64 {
        let end = self.value.unwrap_or(0.0);
        (end + self.half.unwrap_or(0.0)).max(self.ring.unwrap_or(end))
    }
}

/// Draws the groups one below the other along `x`, and a vertical line at `mark`.
pub(crate) fn draw(
    x: &Axis,
    groups: &[Group],
    mark: Option<f64>,
    alt: &str,
) -> anyhow::Result<String> {
    let bars: usize = groups.iter().map(|group| group.bars.len()).sum();
    let rows = f64::from(u32::try_from(bars)?) + GAP * f64::from(u32::try_from(groups.len())?);
    let longest = groups.iter().map(|group| group.name.chars().count()).max().unwrap_or(0);
    let left = u32::try_from(40 + LETTER * longest.min(MAX_LABEL_LEN))?;
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

impl Bar {
    /// Draws its interval and its ring.
    fn draw_around(&self, canvas: &mut Canvas<'_>, middle: f64) -> anyhow::Result<()> {
        if let Some((end, half)) = self.value.zip(self.half) {
            let cap = THICK / 4.0;
            let (low, high) = ((end - half).max(0.0), end + half);
            for line in [
                [(low, middle), (high, middle)],
                [(low, middle - cap), (low, middle + cap)],
                [(high, middle - cap), (high, middle + cap)],
            ] {
                canvas.draw_series(LineSeries::new(line, INK.stroke_width(3)))?;
            }
        }
        if let Some(value) = self.ring {
            canvas.draw_series([Circle::new((value, middle), RING - 2, INK.stroke_width(4))])?;
        }
        Ok(())
    }
}

impl Group {
    /// Draws the group from `top` downwards, and returns where it ends.
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
            bar.draw_around(canvas, middle)?;
            let style = if bar.value.is_some() { left.clone() } else { left.color(&GREY) };
            let room = if bar.ring.is_some() { RING } else { 0 };
            let text = Text::new(bar.text.clone(), (12 + room, 0), style);
            let text = EmptyElement::at((bar.reach(), middle)) + text;
            canvas.draw_series([text])?;
            row -= 1.0;
        }
        let name = Text::new(shortened(&self.name), (-16, 0), right);
        canvas.draw_series([EmptyElement::at((0.0, f64::midpoint(top, row))) + name])?;
        Ok(row)
    }
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= MAX_LABEL_LEN {
        return name.to_owned();
    }
    name.chars().take(MAX_LABEL_LEN - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::palette::colour;

    #[test]
    fn every_bar_has_its_text_and_every_group_its_name_once() {
        let bar = |value, text: &str| Bar::new(value, colour(0), text.to_owned());
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
        assert!(!svg.contains("<circle"), "{svg}");
    }

    #[test]
    fn bar_reaches_beyond_its_interval_and_its_ring() {
        let plain = Bar::new(Some(3.0), colour(0), "3 s".to_owned());
        let bar = Bar { half: Some(0.5), ring: Some(2.0), ..plain.clone() };
        assert_eq!((plain.reach(), bar.reach()), (3.0, 3.5));
        let ringed = Bar { ring: Some(4.0), ..plain };
        assert!((ringed.reach() - 4.0).abs() < 1e-9);
        let group = [Group { name: "vae".to_owned(), bars: vec![bar] }];
        let svg = draw(&Axis::even("seconds", 0.0, 4.0), &group, None, "Bars").unwrap();
        assert_eq!(svg.matches("<circle").count(), 1, "{svg}");
        assert!(svg.matches("<polyline").count() >= 3, "{svg}");
    }
}
