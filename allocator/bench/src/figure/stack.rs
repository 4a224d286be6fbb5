//! Stacked amounts over time.

use plotters::prelude::*;

use super::Axis;
use super::chart::NARROW;
use super::plane::{Canvas, Plane};

/// The room for the vertical axis.
const LEFT: u32 = 136;

/// The amounts of all bands from one moment to another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Span {
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// One for each band, the lowest first.
    pub(crate) amounts: Vec<f64>,
}

/// Draws a band for each colour, the first at the bottom.
pub(crate) fn draw(
    x: &Axis,
    y: &Axis,
    colours: &[RGBColor],
    spans: &[Span],
    alt: &str,
) -> anyhow::Result<String> {
    Plane { size: NARROW, left: LEFT, x, y, named: false }
        .draw(alt, |canvas| draw_bands(canvas, colours, spans))
}

/// Draws the bands between axes.
pub(crate) fn draw_bands(
    canvas: &mut Canvas<'_>,
    colours: &[RGBColor],
    spans: &[Span],
) -> anyhow::Result<()> {
    for (band, colour) in colours.iter().enumerate() {
        let areas = outlines(spans, band);
        canvas.draw_series(areas.into_iter().map(|area| Polygon::new(area, colour.filled())))?;
    }
    Ok(())
}

/// The outline of each stretch in which a band is not empty.
fn outlines(spans: &[Span], band: usize) -> Vec<Vec<(f64, f64)>> {
    let wide = |span: &&Span| span.amounts.get(band).is_some_and(|amount| *amount > 0.0);
    let stretches = spans.split(|span| !wide(&span)).filter(|stretch| !stretch.is_empty());
    stretches.map(|stretch| outline(stretch, band)).collect()
}

/// The outline of one stretch: along the top to the end, and back along the bottom.
fn outline(stretch: &[Span], band: usize) -> Vec<(f64, f64)> {
    let edge = |bands: usize| {
        let mut corners: Vec<(f64, f64)> = Vec::new();
        for span in stretch {
            let height: f64 = span.amounts.iter().take(bands).sum();
            match corners.last_mut() {
                Some((end, last)) if (*last - height).abs() < 1e-9 => *end = span.to,
                Some(_) | None => corners.extend([(span.from, height), (span.to, height)]),
            }
        }
        corners
    };
    let bottom = edge(band).into_iter().rev();
    edge(band + 1).into_iter().chain(bottom).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from: f64, to: f64, amounts: &[f64]) -> Span {
        Span { from, to, amounts: amounts.to_vec() }
    }

    #[test]
    fn band_lies_on_those_below_and_ends_where_it_is_empty() {
        let spans = [
            span(0.0, 1.0, &[0.5, 0.5]),
            span(1.0, 2.0, &[0.5, 0.5]),
            span(2.0, 3.0, &[0.25, 0.5]),
            span(3.0, 4.0, &[1.0, 0.0]),
            span(4.0, 5.0, &[0.0, 1.0]),
        ];
        let first = [(0.0, 1.0), (2.0, 1.0), (2.0, 0.75), (3.0, 0.75)];
        let below = [(3.0, 0.25), (2.0, 0.25), (2.0, 0.5), (0.0, 0.5)];
        let last = [(4.0, 1.0), (5.0, 1.0), (5.0, 0.0), (4.0, 0.0)];
        let upper = outlines(&spans, 1);
        assert_eq!(upper, [[first, below].concat(), last.to_vec()]);
        assert_eq!(outlines(&spans, 0).len(), 1);
        assert_eq!(outlines(&spans, 2), Vec::<Vec<(f64, f64)>>::new());
    }
}
