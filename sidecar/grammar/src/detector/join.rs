//! Joins a dict or JSON object that is printed over several lines.

/// Maximum length of a joined text in bytes, and maximum number of its lines.
const MAX_LEN: usize = 16 * 1024;
const MAX_LINES: u32 = 200;

/// The lines of an object that has begun.
#[derive(Debug, Default)]
pub(super) struct Join {
    text: String,
    lines: u32,
    depth: i32,
}

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joined {
    /// It is a line by itself.
    Alone,
    /// It is a part of an object that has not ended.
    Part,
    /// It ends the object.
    Whole,
}

impl Join {
    /// Whether an object has begun and not ended.
    pub(super) fn is_active(&self) -> bool {
        self.lines > 0
    }

    /// Whether a line may be a part of an object.
    #[inline]
    pub(super) fn may_take(&self, line: &str) -> bool {
        self.lines > 0 || matches!(line.as_bytes(), [.., b',' | b'{'])
    }

    /// Takes a line.
    pub(super) fn take(&mut self, line: &str) -> Joined {
        if !self.may_take(line) {
            return Joined::Alone;
        }
        if self.lines == 0 {
            let start = line
                .find("{'")
                .or_else(|| line.find("{\""))
                .or_else(|| line.strip_suffix('{').map(str::len));
            let Some(text) = start.or_else(|| spaced(line)).and_then(|start| line.get(start..))
            else {
                return Joined::Alone;
            };
            self.depth = depth(text);
            if self.depth <= 0 {
                return Joined::Alone;
            }
            self.text.clear();
            self.text.push('{');
            self.text.push_str(text.strip_prefix('{').unwrap_or(text).trim_start());
            self.lines = 1;
            return Joined::Part;
        }
        let goes_on = line.starts_with(['"', '\'', '{', '}', '[', ']', '-', '(', ')'])
            || line.starts_with(|c: char| c.is_ascii_digit());
        if !goes_on || self.lines >= MAX_LINES || self.text.len() + line.len() > MAX_LEN {
            self.lines = 0;
            return Joined::Alone;
        }
        self.text.push(' ');
        self.text.push_str(line);
        self.depth += depth(line);
        self.lines += 1;
        if self.depth > 0 {
            return Joined::Part;
        }
        self.lines = 0;
        Joined::Whole
    }

    /// The object, after its last line.
    pub(super) fn text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }
}

/// Where an object with spaces after its brace begins: `{ 'loss': 0.5,`.
fn spaced(line: &str) -> Option<usize> {
    let brace = line.find('{')?;
    let inside = line.get(brace + 1..)?;
    inside.trim_start().starts_with(['\'', '"']).then_some(brace)
}

/// How many more objects begin in `text` than end in it.
fn depth(text: &str) -> i32 {
    text.bytes().fold(0, |depth, byte| match byte {
        b'{' => depth + 1,
        b'}' => depth - 1,
        _ => depth,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_over_several_lines_is_joined() {
        let mut join = Join::default();
        assert_eq!(join.take("step 5, loss 1,"), Joined::Alone);
        assert_eq!(join.take("found {'loss': 1,"), Joined::Part);
        assert_eq!(join.take("'lr': {'a': 1}}"), Joined::Whole);
        assert_eq!(join.text(), "{'loss': 1, 'lr': {'a': 1}}");
        assert_eq!(join.take("{"), Joined::Part);
        assert_eq!(join.take("loss 5"), Joined::Alone, "it is not a part of the object");
        assert_eq!(join.take("'lr': 1}"), Joined::Alone);
    }

    #[test]
    fn endless_object_is_given_up() {
        let mut join = Join::default();
        assert_eq!(join.take("{"), Joined::Part);
        let parts = (0..1000).take_while(|_| join.take("\"a\": 1,") == Joined::Part).count();
        assert!(parts < 200, "{parts}");
    }
}
