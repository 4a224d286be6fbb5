//! Control characters that a logger has written as text: `#015` in octal digits, `^M` by a pager.

/// Decodes `#015`, `#033` and the like, as syslog and `SageMaker` write them, and `^M` around frames of bars.
/// `None` if there are none.
#[inline]
pub fn decode(line: &str) -> Option<String> {
    let mark = memchr::memchr2(b'#', b'^', line.as_bytes())?;
    decode_from(line, mark)
}

#[inline(never)]
fn decode_from(line: &str, mark: usize) -> Option<String> {
    if line.starts_with(CARET) || line.contains("]^M") {
        return Some(line.replace(CARET, "\r"));
    }
    let (mut out, mut any) = (String::new(), false);
    let (before, mut rest) = line.split_at_checked(mark)?;
    out.push_str(before);
    while let Some((before, after)) = rest.split_once('#') {
        out.push_str(before);
        let code = after.get(..3).filter(|code| CODES.contains(code) && !is_number(after));
        if let Some(code) = code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            out.push(char::from(code));
            any = true;
            rest = after.get(3..).unwrap_or_default();
        } else {
            out.push('#');
            rest = after;
        }
    }
    out.push_str(rest);
    any.then_some(out)
}

/// A carriage return, as pagers show it.
const CARET: &str = "^M";

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
    fn control_characters_are_decoded() {
        for (line, text) in [
            ("[0]#011a:1#011b:2", "[0]\ta:1\tb:2"),
            ("p>:#015Epoch 0: 50%#033[A", "p>:\rEpoch 0: 50%\u{1b}[A"),
            ("# 5 #0151/4#0152/4", "# 5 \r1/4\r2/4"),
            (
                "^M 4%|#| 1/4 [00:01<00:03, 1it/s]^M  ^M{'loss': 1}",
                "\r 4%|#| 1/4 [00:01<00:03, 1it/s]\r  \r{'loss': 1}",
            ),
        ] {
            assert_eq!(decode(line).as_deref(), Some(text), "{line}");
        }
        for line in [
            "",
            "# 5",
            "50%|####| 5/10",
            "#9",
            "#0",
            "#é",
            "[#000123]",
            "[#012345][1]",
            "#001 x",
            "x^M",
            "a ^ b",
        ] {
            assert_eq!(decode(line), None, "{line}");
        }
    }
}
