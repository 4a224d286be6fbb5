//! Fast searches in lines, which are mostly short.

/// Bytes that are compared at once.
const BLOCK: usize = 32;

/// Whether `bytes` contains `wanted`. For short texts this is faster than `memchr`.
#[inline]
pub fn contains(bytes: &[u8], wanted: u8) -> bool {
    any(bytes, |byte| byte == wanted)
}

/// The place of the first `wanted` in `bytes`.
#[inline]
pub fn find(bytes: &[u8], wanted: u8) -> Option<usize> {
    if bytes.first() == Some(&wanted) {
        return Some(0);
    }
    if contains(bytes, wanted) { memchr::memchr(wanted, bytes) } else { None }
}

/// Whether `bytes` contains one of three bytes.
#[inline]
pub fn contains_any(bytes: &[u8], [a, b, c]: [u8; 3]) -> bool {
    any(bytes, |byte| {
        let is = |wanted| byte == wanted;
        // Without a branch, for the same reason as below.
        is(a) | is(b) | is(c)
    })
}

/// Whether `bytes` contains a digit.
#[inline]
pub fn contains_digit(bytes: &[u8]) -> bool {
    any(bytes, |byte| byte.is_ascii_digit())
}

/// Whether a byte passes `test`. Within a block the loop has no early exit, so that the compiler can
/// vectorise it. The last block overlaps the one before it.
#[inline]
fn any(bytes: &[u8], test: impl Fn(u8) -> bool) -> bool {
    let block = |block: &[u8; BLOCK]| block.iter().fold(false, |any, byte| any | test(*byte));
    let Some(last) = bytes.last_chunk() else { return bytes.iter().any(|byte| test(*byte)) };
    let (blocks, _) = bytes.as_chunks();
    blocks.iter().any(block) || block(last)
}

/// A text that lines are compared with. Most are short, and then no function is called.
#[derive(Clone, Debug)]
pub struct Literal<T> {
    text: T,
    /// Its bytes if it is short, and which bits they are of as many as [`WORD`].
    word: u128,
    mask: u128,
}

/// Maximum length of a short text in bytes.
const WORD: usize = 16;

impl<T: AsRef<str>> Literal<T> {
    /// Creates it from its text.
    pub fn new(text: T) -> Self {
        let mut word = [0; WORD];
        let bytes = text.as_ref().bytes();
        word.iter_mut().zip(bytes.clone()).for_each(|(place, byte)| *place = byte);
        let left = WORD.saturating_sub(bytes.len());
        let mask = u32::try_from(8 * left).ok().and_then(|bits| u128::MAX.checked_shr(bits));
        Self { text, word: u128::from_le_bytes(word), mask: mask.unwrap_or_default() }
    }

    /// The text.
    #[inline]
    pub fn text(&self) -> &str {
        self.text.as_ref()
    }

    /// Whether `bytes` begin with it.
    #[inline]
    pub fn begins(&self, bytes: &[u8]) -> bool {
        match bytes.first_chunk() {
            Some(start) if self.text().len() <= WORD => {
                u128::from_le_bytes(*start) & self.mask == self.word
            }
            _ => bytes.starts_with(self.text().as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_is_at_the_start_or_not() {
        for length in 0..40 {
            let text = "abcdefghijklmnopqrstuvwxyz0123456789abcd".get(..length).unwrap();
            let literal = Literal::new(text);
            assert_eq!(literal.text(), text);
            for after in ["", "x", "a longer text behind it"] {
                assert!(literal.begins(format!("{text}{after}").as_bytes()), "{length}");
                for at in 0..length {
                    let mut other = format!("{text}{after}").into_bytes();
                    other[at] = b'#';
                    assert!(!literal.begins(&other), "{length} {at}");
                    assert!(!literal.begins(&text.as_bytes()[..at]), "{length} {at}");
                }
            }
        }
    }

    #[test]
    fn bytes_are_found_at_any_place() {
        for length in 0..100 {
            let mut bytes = vec![b'a'; length];
            assert!(!contains(&bytes, b'#') && !contains_digit(&bytes), "{length}");
            for at in 0..length {
                bytes[at] = b'#';
                assert!(contains(&bytes, b'#') && !contains_digit(&bytes), "{length} {at}");
                assert!(contains_any(&bytes, *b"xy#") && !contains_any(&bytes, *b"xyz"));
                assert_eq!((find(&bytes, b'#'), find(&bytes, b'7')), (Some(at), None), "{length}");
                bytes[at] = b'7';
                assert!(!contains(&bytes, b'#') && contains_digit(&bytes), "{length} {at}");
                bytes[at] = b'a';
            }
        }
    }
}
