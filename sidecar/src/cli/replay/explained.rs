//! `replay --explain`: what each line was read as, and why.

use std::io::{self, Read, Write};

use paceline_grammar::Reader;
use serde_json::json;

use super::{Pieces, Problem, for_each_read, form};
use crate::explain::{Explained, Explainer};
use crate::merger::Merger;

/// The most characters of a line of the log that are printed.
const MAX_SHOWN: usize = 160;
/// The most characters of a printed line.
const COLUMNS: usize = 100;
/// The spaces before what does not fit into one line.
const INDENT: usize = 10;

/// Prints the lines of a log, each with what was made of it.
pub(super) fn print(
    input: impl Read,
    reader: &mut Reader,
    merger: Merger,
    out: &mut impl Write,
    json: bool,
) -> Result<(), Problem> {
    reader.keep_trace();
    let mut explainer = Explainer::new(merger);
    let mut line = 1;
    for_each_read(input, reader, Pieces::Lines, |reader, piece, found| {
        let mut found = found.into_iter();
        for traced in reader.trace() {
            let of_line: Vec<_> = found.by_ref().take(traced.observations).collect();
            write(out, &explainer.line(line, traced, &of_line), json)?;
        }
        // At the end of the log, losses whose step has never come are reported without it.
        for late in found {
            write(out, &explainer.late(line, &late), json)?;
        }
        line += u64::from(piece.ends_with(b"\n"));
        Ok(())
    })
}

fn write(out: &mut impl Write, explained: &Explained, json: bool) -> io::Result<()> {
    let Explained { line, text, grammar, read, reported, why, not_taken } = explained;
    if json {
        let not_taken: Vec<_> = not_taken
            .iter()
            .map(|(name, number)| json!({ "name": name, "number": number }))
            .collect();
        let object = json!({
            "line": line,
            "text": text,
            "grammar": grammar,
            "read": read,
            "reported": form::json(reported),
            "why": why,
            "not_taken": not_taken,
        });
        return writeln!(out, "{object}");
    }
    let shown: String = text.chars().take(MAX_SHOWN).collect();
    print_wrapped(out, format!("{line:>6}  "), &shown)?;
    let mut part = |name: &str, what: &str| print_wrapped(out, format!("        {name}: "), what);
    match grammar.filter(|_| !read.is_empty()) {
        Some(grammar) => part("read", &format!("{} (as {grammar})", read.join(", ")))?,
        None if !read.is_empty() => part("read", &read.join(", "))?,
        None => part("not read", why.as_deref().unwrap_or_default())?,
    }
    if !reported.is_empty() {
        part("reported", &form::text(reported))?;
    }
    if let Some(why) = why.as_ref().filter(|_| !read.is_empty()) {
        part("why", why)?;
    }
    if !not_taken.is_empty() {
        let numbers = not_taken.iter().map(|(name, number)| match name.as_str() {
            "" => number.clone(),
            name => format!("{number} ({name})"),
        });
        part("not taken", &numbers.collect::<Vec<_>>().join(", "))?;
    }
    Ok(())
}

/// Prints a text behind `start`, in lines of at most [`COLUMNS`] characters.
fn print_wrapped(out: &mut impl Write, start: String, text: &str) -> io::Result<()> {
    let mut used = start.chars().count();
    let mut line = start;
    for (at, word) in text.split(' ').enumerate() {
        let fits = used + 1 + word.chars().count() <= COLUMNS;
        if at > 0 && fits {
            line.push(' ');
            used += 1;
        } else if at > 0 {
            writeln!(out, "{line}")?;
            (line, used) = (" ".repeat(INDENT), INDENT);
        }
        for c in word.chars() {
            if used == COLUMNS {
                writeln!(out, "{line}")?;
                (line, used) = (" ".repeat(INDENT), INDENT);
            }
            line.push(c);
            used += 1;
        }
    }
    writeln!(out, "{line}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wrapped(text: &str) -> String {
        let mut out = Vec::new();
        print_wrapped(&mut out, "     1  ".to_owned(), text).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn long_text_is_broken_between_words_and_within_long_ones() {
        assert_eq!(wrapped("a  b"), "     1  a  b\n");
        let text = format!("{} next {}", "x".repeat(92), "y".repeat(91));
        let expected = format!(
            "     1  {}\n          next\n          {}\n          y\n",
            "x".repeat(92),
            "y".repeat(90)
        );
        assert_eq!(wrapped(&text), expected);
    }

    proptest! {
        #[test]
        fn every_line_fits(text in "[a-z ]{0,400}") {
            let printed = wrapped(&text);
            prop_assert!(printed.lines().all(|line| line.chars().count() <= COLUMNS), "{}", printed);
            let bare = |text: &str| text.replace([' ', '\n'], "");
            prop_assert_eq!(bare(&printed), format!("1{}", bare(&text)));
        }
    }
}
