//! The regular expression of a form.

use super::columns::{Column, Role};

/// A regular expression for the columns up to the last one with a role.
pub(super) fn pattern(columns: &[Column<'_>], roles: &[Option<Role>]) -> String {
    let mut pattern = "^".to_owned();
    let used = roles.iter().rposition(Option::is_some).map_or(0, |at| at + 1);
    for (column, role) in columns.iter().zip(roles).take(used) {
        pattern.push_str(&literal(column.between));
        pattern.push_str(role.map_or(r"[-+.\w]+", Role::group));
    }
    // What touches the last number, such as its unit, ends it.
    let behind =
        used.checked_sub(1).and_then(|at| columns.get(at)).map_or("", |column| column.behind);
    let touching = behind.split(char::is_whitespace).next().unwrap_or_default();
    pattern.push_str(&literal(touching));
    pattern
}

/// Text of a line in a regular expression; white space matches any.
fn literal(text: &str) -> String {
    let mut literal = String::new();
    let mut is_space = false;
    for c in text.chars() {
        if c.is_whitespace() {
            literal.push_str(if is_space { "" } else { r"\s*" });
        } else {
            literal.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
        }
        is_space = c.is_whitespace();
    }
    literal
}
