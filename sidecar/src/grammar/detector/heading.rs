//! Lines that say only the epoch, for the lines below.

use crate::grammar::scan;

/// `Epoch 3/10`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Heading {
    pub(super) epoch: f64,
    pub(super) epochs: Option<u64>,
}

/// A longer line says more than the epoch.
const LONGEST: usize = 60;

impl Heading {
    /// The epoch, if `line` has no other number than it and its total.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let is_frame = |byte: &u8| byte.is_ascii_punctuation() || *byte == b' ';
        let line = line.get(line.bytes().take_while(is_frame).count()..)?;
        let (word, rest) = line.split_at_checked(5).filter(|_| line.len() <= LONGEST)?;
        if !word.eq_ignore_ascii_case("epoch") {
            return None;
        }
        let rest = rest.trim_start_matches([' ', ':', '#', '[', '(', '=']);
        let (epoch, rest) = scan::count(rest)?;
        let rest = rest.trim_start();
        let of = rest.strip_prefix('/').or_else(|| rest.strip_prefix("of ")).map(str::trim_start);
        let (epochs, rest) = match of.and_then(scan::count) {
            Some((epochs, rest)) => (Some(epochs), rest),
            None => (None, rest),
        };
        let more = rest.bytes().any(|byte| byte.is_ascii_digit() || byte == b'|');
        let epoch = u32::try_from(epoch).ok().map(f64::from)?;
        (!more).then_some(Self { epoch, epochs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_says_only_the_epoch() {
        for (line, epoch, epochs) in [
            ("Epoch 3/10", 3.0, Some(10)),
            ("Epoch 0", 0.0, None),
            ("epoch: 7", 7.0, None),
            ("EPOCH [2 / 5]", 2.0, Some(5)),
            ("===== Epoch 4 of 9 =====", 4.0, Some(9)),
            ("Epoch 1 begins", 1.0, None),
        ] {
            assert_eq!(Heading::parse(line), Some(Heading { epoch, epochs }), "{line}");
        }
        for line in ["Epoch", "Epoch x", "Epoch 1: 0.5", "Epochs 5", "Epoch 1 | loss", "step 3"] {
            assert_eq!(Heading::parse(line), None, "{line}");
        }
    }
}
