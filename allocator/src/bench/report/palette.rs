//! One colour for each job, the same in every chart.

use plotters::style::RGBColor;

/// The palette of Okabe and Ito (2008), which colour-blind people tell apart too, without its
/// yellow and black: the one is not seen on white, the other is the text's. The order keeps
/// neighbours far apart.
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

/// Text, and what belongs to no job.
pub(super) const INK: RGBColor = RGBColor(34, 34, 34);
/// Text that explains.
pub(super) const GREY: RGBColor = RGBColor(110, 110, 110);
/// Lines to read values by.
pub(super) const GRID: RGBColor = RGBColor(226, 226, 226);

/// The colour of the job at `place` in the schedule. After six jobs the colours come again, darker.
pub(super) fn colour(place: usize) -> RGBColor {
    let RGBColor(r, g, b) = COLOURS.get(place % COLOURS.len()).copied().unwrap_or(INK);
    let darken = |part: u8| if (place / COLOURS.len()).is_multiple_of(2) { part } else { part / 2 };
    RGBColor(darken(r), darken(g), darken(b))
}

/// The colour as CSS writes it.
pub(super) fn css(colour: RGBColor) -> String {
    let RGBColor(r, g, b) = colour;
    format!("#{r:02x}{g:02x}{b:02x}")
}
