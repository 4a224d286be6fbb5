//! One colour for each job, the same in every chart.

use plotters::style::RGBColor;

/// The palette of Okabe and Ito (2008), which suits colour-blind people. Left out are yellow, which is
/// hard to see on white, and black, the colour of text. The order keeps neighbours different.
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

/// The colour of text, and of lines that belong to no job.
pub(crate) const INK: RGBColor = RGBColor(34, 34, 34);
/// The colour of secondary text.
pub(crate) const GREY: RGBColor = RGBColor(110, 110, 110);
/// The colour of grid lines.
pub(crate) const GRID: RGBColor = RGBColor(226, 226, 226);

/// The colour of the job at `place` in the schedule. After six jobs the colours repeat, darker.
pub(crate) fn colour(place: usize) -> RGBColor {
    let RGBColor(r, g, b) = COLOURS.get(place % COLOURS.len()).copied().unwrap_or(INK);
    let darken = |part: u8| if (place / COLOURS.len()).is_multiple_of(2) { part } else { part / 2 };
    RGBColor(darken(r), darken(g), darken(b))
}

/// The colour as CSS writes it.
pub(crate) fn css(colour: RGBColor) -> String {
    let RGBColor(r, g, b) = colour;
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// The colour at `place` of a gradient with `of` colours, for more items than the palette has.
/// Neighbours look alike; the first and the last differ.
pub(crate) fn ramp(place: u32, of: u32) -> RGBColor {
    const STOPS: [RGBColor; 4] = [COLOURS[0], COLOURS[2], COLOURS[4], COLOURS[1]];
    let at = place * 3 * 255 / of.saturating_sub(1).max(1);
    let (stop, weight) = (at / 255, at % 255);
    let mut stops = STOPS.iter().skip(usize::try_from(stop).unwrap_or(0));
    let from = stops.next().copied().unwrap_or(COLOURS[1]);
    let to = stops.next().copied().unwrap_or(from);
    let mix = |a: u8, b: u8| {
        let mixed = (u32::from(a) * (255 - weight) + u32::from(b) * weight) / 255;
        u8::try_from(mixed).unwrap_or(u8::MAX)
    };
    RGBColor(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ramp_is_smooth_between_colours_of_the_palette() {
        assert_eq!((ramp(0, 48), ramp(47, 48)), (COLOURS[0], COLOURS[1]));
        assert_eq!(ramp(0, 1), COLOURS[0]);
        let far = |a: u8, b: u8| a.abs_diff(b) > 40;
        for place in 1..48 {
            let (a, b) = (ramp(place - 1, 48), ramp(place, 48));
            assert!(!far(a.0, b.0) && !far(a.1, b.1) && !far(a.2, b.2), "{a:?} {b:?}");
        }
    }

    #[test]
    fn dark_mode_replaces_every_dark_colour() {
        let style = include_str!("page.css");
        for dark in [INK, GREY, GRID] {
            assert!(style.contains(&css(dark)), "{} stays as it is in the dark", css(dark));
        }
    }
}
