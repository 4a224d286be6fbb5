//! `replay --suggest`: patterns for lines that look like reports and that nothing reads.

use std::io::{self, Read, Write};

use paceline_grammar::Reader;

use super::{Pieces, Problem, for_each_read};
use crate::explain::{Collector, Suggestion};

/// The most characters of an example that are printed.
const MAX_SHOWN: usize = 70;

/// Prints suggestions for a log.
pub(super) fn print(
    input: impl Read,
    reader: &mut Reader,
    out: &mut impl Write,
) -> Result<(), Problem> {
    reader.keep_trace();
    let mut collector = Collector::default();
    for_each_read(input, reader, Pieces::Chunks, |reader, _, _| {
        collector.take(reader.trace());
        Ok(())
    })?;
    let suggestions = collector.suggestions();
    let printed = if suggestions.is_empty() {
        nothing(&collector, reader.detector().counts().lines, out)
    } else {
        suggestions.iter().try_for_each(|suggestion| write(out, suggestion))
    };
    printed.map_err(Problem::Write)
}

fn nothing(collector: &Collector, lines: u64, out: &mut impl Write) -> io::Result<()> {
    if lines == 0 {
        return writeln!(out, "# nothing to suggest: the log is empty");
    }
    let unread = collector.unread();
    if unread == 0 {
        return writeln!(out, "# nothing to suggest: every line with numbers is read");
    }
    writeln!(
        out,
        "# nothing to suggest: {unread} lines with numbers are not read\n\
         # none repeats with a number that changes like a loss; see replay --explain"
    )
}

fn write(out: &mut impl Write, suggestion: &Suggestion) -> io::Result<()> {
    let Suggestion { reads, example, losses: (first, last), .. } = suggestion;
    let mut shown: String = example.chars().take(MAX_SHOWN).collect();
    if example.chars().nth(MAX_SHOWN).is_some() {
        shown.push('…');
    }
    writeln!(out, "# {reads} lines such as: {shown}")?;
    writeln!(out, "# the first loss would be {first}, the last {last}")?;
    writeln!(out, "{}", suggestion.option())
}
