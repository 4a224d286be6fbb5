//! Frames of Keras that were kept without the characters between them.

use memchr::memchr_iter;

use super::header;

/// Number of digits behind the point of a metric.
const DECIMALS: usize = 4;
/// Minimum number of blanks that take the place of a line.
const MIN_GAP: usize = 2;
/// Length of the word before the number of an epoch.
const WORD: usize = "Epoch ".len();

/// The headers and frames in `text`, each with the character that ends it. `None` if it is one line.
#[inline]
pub(crate) fn split(text: &str) -> Option<Vec<(&str, char)>> {
    if !matches!(text.as_bytes(), [b'0'..=b'9', ..] | [b'E', b'p', ..]) {
        return None;
    }
    // Most lines have no frame at all.
    frames(text).next()?;
    let mut starts: Vec<usize> = frames(text).chain(headers(text)).filter(|at| *at > 0).collect();
    if starts.is_empty() {
        return None;
    }
    starts.sort_unstable();
    starts.dedup();
    let ends = starts.iter().copied().chain([text.len()]);
    let parts = [0].into_iter().chain(starts.iter().copied()).zip(ends);
    let parts: Vec<&str> =
        parts.filter_map(|(from, to)| Some(text.get(from..to)?.trim())).collect();
    let is_header = |part: Option<&&str>| part.is_none_or(|part| header(part).is_some());
    let end = |at: usize| {
        // The last frame of an epoch is followed by the next header.
        if is_header(parts.get(at)) || is_header(parts.get(at + 1)) { '\n' } else { '\r' }
    };
    Some(parts.iter().enumerate().map(|(at, part)| (*part, end(at))).collect())
}

/// Where frames begin: `10/19 [===>`. The number before may run into their counter: `0.228910/19 [===>`.
fn frames(text: &str) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes();
    memchr_iter(b'[', bytes).filter_map(move |bar| {
        bytes.get(bar + 1).filter(|next| b"=>.".contains(next))?;
        let counter = bytes.get(..bar)?.strip_suffix(b" ")?;
        let total = digits_at_end(counter);
        let before = counter.get(..counter.len() - total)?.strip_suffix(b"/")?;
        let step = digits_at_end(before);
        let start = before.len() - step;
        let is_fraction = start > 0 && bytes.get(start - 1) == Some(&b'.');
        let start = if is_fraction { start + DECIMALS } else { start };
        (total > 0 && start < before.len()).then_some(start)
    })
}

/// Where headers begin, behind or before blanks: `Epoch 2/10`.
fn headers(text: &str) -> impl Iterator<Item = usize> {
    text.match_indices("Epoch ").filter_map(|(at, _)| {
        let (before, rest) = text.split_at_checked(at)?;
        let length =
            rest.get(WORD..)?.bytes().take_while(|b| b.is_ascii_digit() || *b == b'/').count();
        let (whole, after) = rest.split_at_checked(WORD + length)?;
        let gap =
            |text: &str| text.len() >= MIN_GAP && text.bytes().take(MIN_GAP).all(|b| b == b' ');
        let is_alone =
            (before.is_empty() || before.ends_with("  ")) && (after.is_empty() || gap(after));
        (is_alone && header(whole).is_some()).then_some(at)
    })
}

fn digits_at_end(bytes: &[u8]) -> usize {
    bytes.iter().rev().take_while(|byte| byte.is_ascii_digit()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_in_one_line_are_parted() {
        for (text, parts) in [
            (
                "Epoch 3/50      2/2 [====] - 5s - loss: 4.5 - val_loss: 3.5      Epoch 4/50",
                [("Epoch 3/50", '\n'), ("2/2 [====] - 5s - loss: 4.5 - val_loss: 3.5", '\n'), ("Epoch 4/50", '\n')]
                    .as_slice(),
            ),
            (
                " 3/19 [==>.] - ETA: 3s - loss: 1.5000 - mae: 0.228910/19 [===>.] - loss: 1.250019/19 [====] - loss: 1.0"
                    .trim_start(),
                &[
                    ("3/19 [==>.] - ETA: 3s - loss: 1.5000 - mae: 0.2289", '\r'),
                    ("10/19 [===>.] - loss: 1.2500", '\r'),
                    ("19/19 [====] - loss: 1.0", '\n'),
                ],
            ),
        ] {
            assert_eq!(split(text).as_deref(), Some(parts), "{text}");
        }
        for text in [
            "",
            "Epoch 3/50",
            "3/19 [==>.] - ETA: 3s - loss: 1.5000",
            "Epoch 3/50  loss: 0.5",
            "Epoch 3/50  [5/90] loss: 0.5",
            "1/2 [a] 1/2 [b]",
        ] {
            assert_eq!(split(text), None, "{text}");
        }
    }
}
