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
pub(crate) const INK: RGBColor = RGBColor(34, 34, 34);
/// Text that explains.
pub(crate) const GREY: RGBColor = RGBColor(110, 110, 110);
/// Lines to read values by.
pub(crate) const GRID: RGBColor = RGBColor(226, 226, 226);

/// The colour of the job at `place` in the schedule. After six jobs the colours come again, darker.
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

/// The colour of the one at `place` among `of` in an order, where these are too many for a colour
/// each: neighbours are alike, the first and the last are not.
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
    fn a_ramp_begins_and_ends_with_colours_of_the_palette_and_has_no_jumps() {
        assert_eq!((ramp(0, 48), ramp(47, 48)), (COLOURS[0], COLOURS[1]));
        assert_eq!(ramp(0, 1), COLOURS[0]);
        let far = |a: u8, b: u8| a.abs_diff(b) > 40;
        for place in 1..48 {
            let (a, b) = (ramp(place - 1, 48), ramp(place, 48));
            assert!(!far(a.0, b.0) && !far(a.1, b.1) && !far(a.2, b.2), "{a:?} {b:?}");
        }
    }

    #[test]
    fn the_page_turns_light_what_is_dark_on_white() {
        let style = include_str!("page.css");
        for dark in [INK, GREY, GRID] {
            assert!(style.contains(&css(dark)), "{} stays as it is in the dark", css(dark));
        }
    }
}
