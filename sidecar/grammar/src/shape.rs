//! Lines of a fixed shape, described by templates.

use memchr::memmem::Finder;
use paceline_lines::bytes;
use paceline_lines::observation::{Observation, Phase, Span};
use paceline_lines::scan;

use super::draft::Draft;

/// Literal text of a template.
type Literal = bytes::Literal<&'static str>;

/// The shape of a line.
///
/// A template is literal text with fields in braces. Spaces and tabs in it match any white space or
/// none. White space before a number is skipped. The text after the template's end is ignored.
///
/// | field | matches |
/// |---|---|
/// | `{step}` | the step since the start of training |
/// | `{batch}`, `{sample}` | the batch or sample since the start of the epoch |
/// | `{total}` | the total of these |
/// | `{epoch}`, `{epochs}` | the epoch and the number of epochs |
/// | `{loss}` | a loss, named by the calls after [`Shape::new`] in their order |
/// | `{s}`, `{ms}` | the time of one batch in seconds or milliseconds |
/// | `{rate}` | the number of batches per second |
/// | `{_}` | a number that is ignored |
/// | `{..}` | anything up to the exact text that follows it in the template |
#[derive(Debug)]
pub(super) struct Shape {
    start: Literal,
    parts: Vec<Part>,
    losses: Vec<Named>,
    is_known: bool,
    /// What precedes the time of the batch in the text after the shape, if it is there.
    timed: Option<Box<Finder<'static>>>,
}

/// How the lines of a shape start. Most lines differ from most shapes in their first two bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    /// The first byte; `None` for a number.
    first: Option<u8>,
    /// The second byte; `None` for any.
    second: Option<u8>,
}

impl Start {
    /// Whether `byte` may be the first one.
    #[inline]
    pub(super) fn may_be(self, byte: u8) -> bool {
        let may_be_number = || byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.');
        self.first.map_or_else(may_be_number, |first| first == byte)
    }

    /// Whether `byte` may be the second one.
    #[inline]
    pub(super) fn may_go_on(self, byte: u8) -> bool {
        self.second.is_none_or(|second| second == byte)
    }

    /// Whether `line` may start so.
    #[inline]
    pub(super) fn is_of(self, line: &[u8]) -> bool {
        match line {
            [first, second, ..] => self.may_be(*first) && self.may_go_on(*second),
            [first] => self.may_be(*first),
            [] => false,
        }
    }
}

/// A field and the text after it.
#[derive(Debug)]
struct Part {
    field: Field,
    after: Literal,
}

#[derive(Debug)]
enum Field {
    Until(Box<Finder<'static>>),
    Count(Counted),
    Epoch,
    /// A time; holds the number of its units per second.
    Seconds(f64),
    /// Batches per second.
    Rate,
    Loss,
    Number,
}

/// The meaning of a count.
#[derive(Clone, Copy, Debug)]
enum Counted {
    Step,
    Batch,
    Sample,
    Total,
    Epochs,
}

#[derive(Debug)]
struct Named {
    name: &'static str,
    phase: Phase,
    span: Span,
}

impl Shape {
    /// The shape that `template` describes. Each `{loss}` in it needs a call that names it.
    pub(super) fn new(template: &'static str) -> Self {
        let (start, mut rest) = template.split_at(template.find('{').unwrap_or(template.len()));
        let mut parts = Vec::new();
        while let Some((name, after)) = rest.strip_prefix('{').and_then(|r| r.split_once('}')) {
            let (after, next) = after.split_at(after.find('{').unwrap_or(after.len()));
            rest = next;
            parts.push(if name == ".." {
                let needle = after.trim_end();
                let after = after.strip_prefix(needle).unwrap_or_default();
                Part {
                    field: Field::Until(Box::new(Finder::new(needle))),
                    after: Literal::new(after),
                }
            } else {
                Part { field: field(name), after: Literal::new(after) }
            });
        }
        let start = Literal::new(start);
        Self { start, parts, losses: Vec::new(), is_known: false, timed: None }
    }

    /// Names the next loss as a training loss.
    pub(super) fn train(self, name: &'static str, span: Span) -> Self {
        self.loss(name, Phase::Train, span)
    }

    /// Names the next loss as a mean over held-out data.
    pub(super) fn validation(self, name: &'static str) -> Self {
        self.loss(name, Phase::Validation, Span::Epoch)
    }

    /// Names the next loss.
    pub(super) fn loss(mut self, name: &'static str, phase: Phase, span: Span) -> Self {
        self.losses.push(Named { name, phase, span });
        self
    }

    /// Declares that such a line contains nothing to report.
    pub(super) fn known(mut self) -> Self {
        self.is_known = true;
        self
    }

    /// Reads the time of the batch after `mark`, in seconds, from lines that have it.
    pub(super) fn timed(mut self, mark: &'static str) -> Self {
        self.timed = Some(Box::new(Finder::new(mark)));
        self
    }

    /// Whether such a line contains nothing to report.
    pub(super) fn is_known(&self) -> bool {
        self.is_known
    }

    /// The first two bytes of its lines.
    pub(super) fn start(&self) -> Start {
        match self.start.text().as_bytes() {
            [] => Start { first: None, second: None },
            // White space may be missing, or more.
            [first] | [first, b' ' | b'\t', ..] => Start { first: Some(*first), second: None },
            [first, second, ..] => Start { first: Some(*first), second: Some(*second) },
        }
    }

    /// Reads a line of this shape into `draft`, which is empty. Returns the text after it; `None`
    /// if the line has another shape.
    pub(super) fn read<'a>(&self, line: &'a str, draft: &mut Draft) -> Option<&'a str> {
        let rest = literal(line, &self.start)?;
        let Some(rest) = self.fields(rest, draft) else {
            draft.clear();
            return None;
        };
        if let Some(mark) = &self.timed
            && let Some(at) = mark.find(rest.as_bytes())
            && let Some((seconds, _)) = rest.get(at + mark.needle().len()..).and_then(scan::number)
        {
            draft.found.batch_seconds = positive(seconds);
        }
        Some(rest)
    }

    fn fields<'a>(&self, line: &'a str, draft: &mut Draft) -> Option<&'a str> {
        let mut rest = line;
        let mut losses = self.losses.iter();
        for Part { field, after } in &self.parts {
            let behind = match field {
                Field::Until(needle) => {
                    let at = needle.find(rest.as_bytes())?;
                    rest.get(at + needle.needle().len()..)?
                }
                Field::Count(counted) => {
                    let (count, behind) = scan::count(scan::spaces(rest))?;
                    counted.put(count, &mut draft.found);
                    behind
                }
                Field::Epoch => {
                    let (epoch, behind) = scan::number(scan::spaces(rest))?;
                    draft.found.epoch = positive(epoch);
                    behind
                }
                Field::Seconds(parts) => {
                    let (time, behind) = scan::number(scan::spaces(rest))?;
                    draft.found.batch_seconds = positive(time / parts);
                    behind
                }
                Field::Rate => {
                    let (rate, behind) = scan::number(scan::spaces(rest))?;
                    draft.found.batch_seconds = positive(rate.recip());
                    behind
                }
                Field::Number => scan::skip_number(scan::spaces(rest))?,
                Field::Loss => {
                    let (value, behind) = scan::value(scan::spaces(rest))?;
                    let Named { name, phase, span } = losses.next()?;
                    draft.push(name, *phase, *span, value);
                    behind
                }
            };
            rest = literal(behind, after)?;
        }
        Some(rest)
    }
}

impl Counted {
    #[inline]
    fn put(self, count: u64, found: &mut Observation) {
        match self {
            Self::Step => found.step = Some(count),
            Self::Batch => {
                found.step = Some(count);
                found.step_in_epoch = true;
            }
            Self::Sample => {
                found.step = Some(count);
                found.step_in_epoch = true;
                found.step_in_samples = true;
            }
            Self::Total => found.total_steps = Some(count),
            Self::Epochs => found.total_epochs = Some(count),
        }
    }
}

fn positive(number: f64) -> Option<f64> {
    Some(number).filter(|number| (0.0..=f64::MAX).contains(number))
}

/// The text after `text`; white space in `text` matches any white space.
#[expect(clippy::inline_always, reason = "six calls for most lines with a loss")]
#[inline(always)]
fn literal<'a>(line: &'a str, text: &Literal) -> Option<&'a str> {
    if text.begins(line.as_bytes()) {
        line.get(text.text().len()..)
    } else {
        literal_apart_from_spaces(line, text.text())
    }
}

#[cold]
fn literal_apart_from_spaces<'a>(line: &'a str, text: &str) -> Option<&'a str> {
    let bytes = line.as_bytes();
    let mut at = 0;
    for byte in text.bytes() {
        if matches!(byte, b' ' | b'\t') {
            while matches!(bytes.get(at), Some(b' ' | b'\t')) {
                at += 1;
            }
        } else if bytes.get(at) == Some(&byte) {
            at += 1;
        } else {
            return None;
        }
    }
    line.get(at..)
}

fn field(name: &str) -> Field {
    match name {
        "step" => Field::Count(Counted::Step),
        "batch" => Field::Count(Counted::Batch),
        "sample" => Field::Count(Counted::Sample),
        "total" => Field::Count(Counted::Total),
        "epochs" => Field::Count(Counted::Epochs),
        "epoch" => Field::Epoch,
        "loss" => Field::Loss,
        "s" => Field::Seconds(1.0),
        "ms" => Field::Seconds(1e3),
        "rate" => Field::Rate,
        // A misspelt field is caught by the table test of its grammar.
        _ => Field::Number,
    }
}

#[cfg(test)]
mod tests {
    use paceline_lines::observation::Loss;

    use super::*;

    #[test]
    fn template_reads_its_fields() {
        let shape = Shape::new("iter {step}/ {total} |{..}loss: {loss} ({_}) took {ms}ms")
            .train("loss", Span::Interval);
        let line = "iter   1,000/   5000 | lr 0.1 | loss: 0.5(0.6)\ttook 250ms and more";
        let mut draft = Draft::default();
        let rest = shape.read(line, &mut draft).unwrap();
        let found = &draft.found;
        assert_eq!((found.step, found.total_steps), (Some(1000), Some(5000)));
        assert_eq!((found.batch_seconds, rest), (Some(0.25), " and more"));
        let loss =
            Loss { name: "loss".to_owned(), phase: Phase::Train, span: Span::Interval, value: 0.5 };
        assert_eq!(found.losses, [loss]);
        for other in ["", "iter", "iter 1/ 5| loss 0.5", "iter 1/ 5| loss: x (1) took 1ms"] {
            draft.clear();
            assert_eq!(shape.read(other, &mut draft), None, "{other}");
            assert_eq!(draft.found, Observation::default(), "{other}");
        }
    }
}
