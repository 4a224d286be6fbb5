//! Conversions between kinds of numbers.

/// Converts a float that is a whole number of 0 or more.
pub fn whole(value: f64) -> Option<u64> {
    let (count, is_whole) = split(value)?;
    is_whole.then_some(count)
}

/// Converts a float of 0 or more and drops its fraction.
pub fn floor(value: f64) -> Option<u64> {
    split(value).map(|(count, _)| count)
}

/// A count as a float, capped at `u32::MAX`.
pub fn float(count: u64) -> f64 {
    u32::try_from(count).unwrap_or(u32::MAX).into()
}

/// The whole part of a float of 0 or more, and whether that is all of it.
fn split(value: f64) -> Option<(u64, bool)> {
    // Beyond 2^53 a double cannot represent every whole number.
    if !(0.0..=9_007_199_254_740_992.0).contains(&value) {
        return None;
    }
    // -0.0 is allowed and counts as 0.
    let bits = value.abs().to_bits();
    let mantissa = (bits & ((1 << 52) - 1)) | (1 << 52);
    // The exponent of two that scales the mantissa; negative for numbers below one.
    let power = u32::try_from(bits >> 52).ok()?.checked_sub(1023).map_or(0, |power| power + 1);
    if power > 53 {
        return Some((mantissa << 1, true));
    }
    let shift = 53 - power;
    let count = mantissa >> shift;
    Some((count, count << shift == mantissa || value == 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_convert_to_integers_only_where_exact() {
        for (value, count) in [
            (0.0, 0),
            (-0.0, 0),
            (0.999, 0),
            (1.0, 1),
            (1.5, 1),
            (4_294_967_297.25, 4_294_967_297),
            (9_007_199_254_740_991.0, 9_007_199_254_740_991),
            (9_007_199_254_740_992.0, 9_007_199_254_740_992),
        ] {
            assert_eq!(floor(value), Some(count), "{value}");
            assert_eq!(whole(value), Some(count).filter(|_| value.fract() == 0.0), "{value}");
        }
        for value in [1e17, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!((floor(value), whole(value)), (None, None), "{value}");
        }
    }
}
