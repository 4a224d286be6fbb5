//! The numbers in a line, as people see them.

/// A number in a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Number<'a> {
    /// Where it starts, in bytes.
    pub(super) start: usize,
    /// Its text, without a unit.
    pub(super) text: &'a str,
    /// Its value; NaN and infinity are values too.
    pub(super) value: f64,
}

impl Number<'_> {
    /// The byte after it.
    pub(super) fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Whether it is written as a whole number.
    pub(super) fn is_count(&self) -> bool {
        self.text.bytes().all(|byte| byte.is_ascii_digit())
    }
}

/// The longest unit after a number in bytes, as in `20ms`.
const MAX_UNIT: usize = 3;

/// The numbers of a line. Digits in words, versions, dates and times of day do not count.
pub(super) fn numbers(line: &str) -> Vec<Number<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(length) = token(line, at) {
        let text = line.get(at..at + length).unwrap_or_default();
        if let Some(number) = number(text, at) {
            found.push(number);
        }
        at += length.max(1);
    }
    found
}

/// The name of the number at `start`: the last word before it, but after the number before.
pub(super) fn name(line: &str, after: usize, start: usize) -> &str {
    let before = line.get(after..start).unwrap_or_default();
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '/' | '.' | '-' | '@');
    let end = before.trim_end_matches(|c: char| !c.is_alphanumeric());
    let first = end.char_indices().rev().take_while(|(_, c)| is_name(*c)).last();
    first.and_then(|(at, _)| end.get(at..)).unwrap_or_default().trim_start_matches(['-', '.', '/'])
}

/// The length of the token at `at`: a run of bytes that may belong to one number or one word, or a
/// single other byte. `None` at the end.
fn token(line: &str, at: usize) -> Option<usize> {
    let (before_all, rest) = line.as_bytes().split_at_checked(at).filter(|(_, r)| !r.is_empty())?;
    let follows_word = before_all.last().is_some_and(u8::is_ascii_alphanumeric);
    let is_in_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
    let mut length = 0;
    while let Some(byte) = rest.get(length) {
        let next = rest.get(length + 1).copied().unwrap_or(b' ');
        let before = length.checked_sub(1).and_then(|at| rest.get(at)).copied();
        let joins = match *byte {
            b'.' => next.is_ascii_digit(),
            // The sign of a number, or of its exponent. A range such as `3-4` is two numbers, but a
            // date is one token.
            b'+' | b'-' => {
                let is_exponent = matches!(before, Some(b'e' | b'E'))
                    && rest.first().is_some_and(|first| !first.is_ascii_alphabetic());
                let is_date = length >= 4 && *byte == b'-' && is_date(rest.get(..length), next);
                let is_sign = length == 0 && !follows_word;
                (is_sign || is_exponent || is_date)
                    && (next.is_ascii_digit() || b".inIN".contains(&next))
            }
            // A time of day.
            b':' => {
                before.is_some_and(|before| before.is_ascii_digit())
                    && next.is_ascii_digit()
                    && rest.get(length + 2).is_some_and(u8::is_ascii_digit)
            }
            byte => is_in_word(byte),
        };
        if !joins {
            break;
        }
        length += 1;
    }
    Some(length.max(1))
}

/// Whether `before` is the start of a date such as `2026-01`.
fn is_date(before: Option<&[u8]>, next: u8) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_digit() || *byte == b'-';
    next.is_ascii_digit()
        && before.is_some_and(|before| {
            before.iter().take(4).all(u8::is_ascii_digit)
                && before.iter().all(allowed)
                && matches!(before.len(), 4 | 7)
        })
}

/// The number that a token starts with, if only a unit follows it.
fn number(token: &str, start: usize) -> Option<Number<'_>> {
    let unsigned = token.trim_start_matches(['+', '-']);
    if ["nan", "inf", "infinity"].iter().any(|word| unsigned.eq_ignore_ascii_case(word)) {
        return Some(Number { start, text: token, value: token.parse().ok()? });
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let numeric = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    let longest = token.bytes().take_while(|byte| numeric(*byte)).count();
    let parsed = (1..=longest).rev().find_map(|length| {
        let text = token.get(..length)?;
        text.parse().ok().map(|value| (text, value))
    });
    let (text, value) = parsed.filter(|(text, _)| !text.ends_with('.'))?;
    let unit = token.get(text.len()..)?;
    let is_unit = unit.len() <= MAX_UNIT && unit.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_unit.then_some(Number { start, text, value })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seen(line: &str) -> Vec<&str> {
        numbers(line).iter().map(|number| number.text).collect()
    }

    #[test]
    fn numbers_are_found_with_signs_exponents_and_units() {
        assert_eq!(seen("it=12/500 obj: -1.5e-3, dt 20ms 7%"), ["12", "500", "-1.5e-3", "20", "7"]);
        assert_eq!(seen("[ 3] J(θ)=.5 nan -inf"), ["3", ".5", "nan", "-inf"]);
        assert_eq!(seen("3-4 (0.25)"), ["3", "4", "0.25"]);
    }

    #[test]
    fn words_versions_dates_and_times_are_not_numbers() {
        for line in [
            "resnet50 on cuda:x with v1.2.3",
            "2026-01-31 12:30:59",
            "0x1f 8a7f9c",
            "nano infinite",
            "1.2.3",
            "",
        ] {
            assert_eq!(seen(line), [""; 0], "{line}");
        }
    }

    #[test]
    fn name_is_the_last_word_before_the_number() {
        let line = "step 5 | obj: 0.5 | train/err_rate=(0.25) 7";
        let all = numbers(line);
        let ends = [0].into_iter().chain(all.iter().map(Number::end));
        let names: Vec<_> =
            all.iter().zip(ends).map(|(number, after)| name(line, after, number.start)).collect();
        assert_eq!(names, ["step", "obj", "train/err_rate", ""]);
    }

    proptest! {
        #[test]
        fn any_line_is_searched_without_panic(line in any::<String>(), ascii in "[-+.0-9e:naif ]*") {
            for line in [line, ascii] {
                for number in numbers(&line) {
                    prop_assert_eq!(line.get(number.start..number.end()), Some(number.text));
                    name(&line, 0, number.start);
                }
            }
        }
    }
}
