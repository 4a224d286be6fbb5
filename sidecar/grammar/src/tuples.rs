//! Lists of names and values, as Python prints them: `[('loss', 0.5), ('step', 5)]`.

use paceline_lines::scan;

/// Maximum number of tuples of a list.
const MAX_TUPLES: usize = 64;

/// A line with such a list, with its tuples as `name: value`. `None` if the line has none.
pub(super) fn as_pairs(line: &str) -> Option<String> {
    let bytes = line.as_bytes();
    let at = memchr::memchr_iter(b'[', bytes).find(|at| bytes.get(at + 1) == Some(&b'('))?;
    let (before, rest) = (line.get(..at)?, line.get(at + 2..)?);
    if !rest.starts_with(['\'', '"']) {
        return None;
    }
    let (list, after) = rest.rsplit_once(")]")?;
    // `OrderedDict([…])`.
    let before = match before.strip_suffix('(') {
        Some(call) => call.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_'),
        None => before,
    };
    let mut out = String::with_capacity(line.len());
    out.push_str(before);
    for tuple in list.split("), (").take(MAX_TUPLES) {
        let inside = tuple.get(1..).filter(|_| tuple.starts_with(['\'', '"']))?;
        let (name, value) = inside.split_once(['\'', '"'])?;
        let value = value.strip_prefix(',')?.trim_ascii();
        // A history has lists in the place of values.
        if name.contains([':', '=', ',']) || scan::number(of_call(value)).is_none() {
            continue;
        }
        for part in [", ", name, ": ", value] {
            out.push_str(part);
        }
    }
    out.push_str(", ");
    out.push_str(after.trim_start_matches(')'));
    Some(out)
}

/// The first argument of a call, such as that of `tensor(0.5)`, or the text itself.
fn of_call(value: &str) -> &str {
    let is_call = value.starts_with(|c: char| c.is_ascii_alphabetic());
    value.split_once('(').filter(|_| is_call).map_or(value, |(_, argument)| argument)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tuples_become_pairs() {
        for (line, pairs) in [
            ("step 5 [('loss', 0.5), ('acc', 0.1)]", "step 5 , loss: 0.5, acc: 0.1, "),
            ("stats:[(\"loss\", tensor(0.5))] done", "stats:, loss: tensor(0.5),  done"),
            ("OrderedDict([('loss', 0.5), ('n', 'x')])", ", loss: 0.5, "),
            ("[('loss', [0.5, 0.25]), ('step', 5)]", ", step: 5, "),
        ] {
            assert_eq!(as_pairs(line).as_deref(), Some(pairs), "{line}");
        }
        for line in ["[(0, 0.5), (1, 0.25)]", "[('loss', 0.5)", "loss: 0.5", "[('loss')]", ""] {
            assert_eq!(as_pairs(line), None, "{line}");
        }
    }
}
