//! Control characters that a logger has written as `#` and three octal digits.

use crate::bytes;

/// Decodes `#015`, `#033` and the like, as syslog and `SageMaker` write them. Of several frames of a
/// bar the last one is kept; escape sequences are dropped. `None` if there are none.
#[inline]
pub(crate) fn decode(line: &str) -> Option<String> {
    if bytes::contains(line.as_bytes(), b'#') { decode_all(line) } else { None }
}

fn decode_all(line: &str) -> Option<String> {
    let mut out = String::new();
    let mut any = false;
    let mut frame = None;
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('#') {
        let code = after.get(..3).filter(|code| CODES.contains(code) && !is_number(after));
        out.push_str(before);
        rest = after;
        let Some(code) = code.and_then(|code| u8::from_str_radix(code, 8).ok()) else {
            out.push('#');
            continue;
        };
        any = true;
        rest = after.get(3..).unwrap_or_default();
        match code {
            b'\t' => out.push('\t'),
            0x1b => {
                let is_parameter = |c: char| c.is_ascii_digit() || "[;?".contains(c);
                let sequence = rest.trim_start_matches(is_parameter);
                rest = sequence.get(1..).unwrap_or_default();
            }
            // The prefix before the first frame stays.
            b'\r' => match frame {
                None => frame = Some(out.len()),
                Some(frame) if !rest.is_empty() => out.truncate(frame),
                Some(_) => {}
            },
            _ => {}
        }
    }
    out.push_str(rest);
    any.then_some(out)
}

/// The codes of the control characters that programs print.
const CODES: [&str; 8] = ["007", "010", "011", "012", "013", "014", "015", "033"];

/// Whether `text` is a counter of more than three digits: `#012345]`.
fn is_number(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    digits > 3 && text.as_bytes().get(digits).is_some_and(|end| matches!(end, b']' | b')'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octal_control_characters_are_decoded() {
        for (line, text) in [
            ("[0]#011a:1#011b:2", "[0]\ta:1\tb:2"),
            ("p>:#015Epoch 0: 50%#033[A", "p>:Epoch 0: 50%"),
            ("p>:#0151/4#0152/4#0153/4", "p>:3/4"),
            ("#015 1/4#015 2/4#015 3/4", " 3/4"),
            ("#0151/4#0152/4#015", "2/4"),
        ] {
            assert_eq!(decode(line).as_deref(), Some(text), "{line}");
        }
        for line in
            ["", "# 5", "50%|####| 5/10", "#9", "#0", "#é", "[#000123]", "[#012345][1]", "#001 x"]
        {
            assert_eq!(decode(line), None, "{line}");
        }
    }
}
