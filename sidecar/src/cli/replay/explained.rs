//! `replay --explain`: what each line was read as, and why.

use std::io::{self, Read, Write};

use serde_json::json;

use super::{Pieces, Problem, for_each_read, form};
use crate::explain::{Explained, Explainer};
use crate::grammar::Reader;
use crate::merger::Merger;

/// The most characters of a line that are printed.
const MAX_SHOWN: usize = 160;

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
    writeln!(out, "{line:>6}  {}", text.chars().take(MAX_SHOWN).collect::<String>())?;
    let mut part = |name: &str, what: &str| writeln!(out, "        {name}: {what}");
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
