//! A unique name for each start of a reporter.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Crockford's base 32: no I, L, O or U.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// A new ULID: 48 bits of Unix milliseconds, then 80 random bits, as 26 digits.
///
/// The random bits come from the standard library's keys for hash maps. They differ even if
/// containers start at the same moment with the same process id, and need no other crate.
pub(crate) fn new(since_epoch: Duration) -> String {
    let random = || u128::from(RandomState::new().hash_one(std::process::id()));
    encode(since_epoch.as_millis() << 80 | (random() << 64 | random()) & ((1 << 80) - 1))
}

/// 128 bits in 26 digits, the first of which holds 3 bits and the others 5.
fn encode(bits: u128) -> String {
    (0..26)
        .rev()
        .filter_map(|digit| usize::try_from(bits >> (5 * digit) & 31).ok())
        .filter_map(|digit| DIGITS.get(digit))
        .map(|digit| char::from(*digit))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_26_digits_and_new_each_time() {
        let [one, other] = [(), ()].map(|()| new(Duration::from_secs(1_760_000_000)));
        assert_eq!(one.len(), 26);
        assert!(one.bytes().all(|digit| DIGITS.contains(&digit)));
        assert_ne!(one, other);
    }

    #[test]
    fn names_sort_by_their_time() {
        let at = |millis| new(Duration::from_millis(millis));
        assert!(at(1_760_000_000_000) < at(1_760_000_000_001));
    }

    #[test]
    fn the_digits_are_those_of_base_32() {
        assert_eq!(encode(0), "0".repeat(26));
        assert_eq!(encode(33), format!("{}11", "0".repeat(24)));
        assert_eq!(encode(u128::MAX), format!("7{}", "Z".repeat(25)));
    }
}
