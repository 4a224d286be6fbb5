//! Numbers of one kind as numbers of another.

/// A float that is a whole number from 0 on, as an integer.
pub(crate) fn whole(value: f64) -> Option<u64> {
    if value.fract() == 0.0 { floor(value) } else { None }
}

/// A float from 0 on without its fraction, as an integer.
pub(crate) fn floor(value: f64) -> Option<u64> {
    // Beyond this a double does not hold every whole number.
    if !(0.0..=9_007_199_254_740_992.0).contains(&value) {
        return None;
    }
    // There is a zero below zero.
    let bits = value.abs().to_bits();
    let mantissa = (bits & ((1 << 52) - 1)) | (1 << 52);
    // The power of two that the mantissa is multiplied by; below one for most.
    let power = u32::try_from(bits >> 52).ok()?.checked_sub(1023).map_or(0, |power| power + 1);
    Some(if power > 53 { mantissa << 1 } else { mantissa >> (53 - power) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_become_integers_where_they_are_exact() {
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
