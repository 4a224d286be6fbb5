//! Fast searches in lines, which are mostly short.

/// Bytes that are compared at once.
const BLOCK: usize = 32;

/// Whether `bytes` contains `wanted`. For short texts this is faster than `memchr`.
#[inline]
pub(crate) fn contains(bytes: &[u8], wanted: u8) -> bool {
    any(bytes, |byte| byte == wanted)
}

/// The place of the first `wanted` in `bytes`.
#[inline]
pub(crate) fn find(bytes: &[u8], wanted: u8) -> Option<usize> {
    if bytes.first() == Some(&wanted) {
        return Some(0);
    }
    if contains(bytes, wanted) { memchr::memchr(wanted, bytes) } else { None }
}

/// Whether `bytes` contains one of three bytes.
#[inline]
pub(crate) fn contains_any(bytes: &[u8], [a, b, c]: [u8; 3]) -> bool {
    any(bytes, |byte| {
        let is = |wanted| byte == wanted;
        // Without a branch, for the same reason as below.
        is(a) | is(b) | is(c)
    })
}

/// Whether `bytes` contains a digit.
#[inline]
pub(crate) fn contains_digit(bytes: &[u8]) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

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
