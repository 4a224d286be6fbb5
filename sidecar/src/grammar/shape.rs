//! Lines of a fixed shape, written down as templates.

use memchr::memmem::Finder;

use super::draft::Draft;
use super::scan;
use crate::observation::{Observation, Phase, Span};

/// The shape of a line.
///
/// A template is literal text with fields in braces. Spaces and tabs in it stand for any white
/// space or none, white space before a number is passed over, and what follows the template's end does not
/// matter.
///
/// | field | what stands there |
/// |---|---|
/// | `{step}` | the step since the start of training |
/// | `{batch}`, `{sample}` | the batch or sample since the start of the epoch |
/// | `{total}` | how many of these there are |
/// | `{epoch}`, `{epochs}` | the epoch, and how many there are |
/// | `{loss}` | a loss, named by the calls after [`Shape::new`] in their order |
/// | `{s}`, `{ms}` | the time of one batch in seconds or milliseconds |
/// | `{_}` | a number that says nothing |
/// | `{..}` | anything up to the text that follows it in the template, exactly as it is there |
#[derive(Debug)]
pub(super) struct Shape {
    start: &'static str,
    parts: Vec<Part>,
    losses: Vec<Named>,
}

/// A field and the text behind it.
#[derive(Debug)]
struct Part {
    field: Field,
    after: &'static str,
}

#[derive(Debug)]
enum Field {
    Until(Box<Finder<'static>>),
    Count(Counted),
    Epoch,
    /// A time in units of which a second has so many.
    Seconds(f64),
    Loss,
    Number,
}

/// What a count is of.
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
    /// The shape that `template` describes. Each `{loss}` in it wants a call that names it.
    pub(super) fn new(template: &'static str) -> Self {
        let (start, mut rest) = template.split_at(template.find('{').unwrap_or(template.len()));
        let mut parts = Vec::new();
        while let Some((name, after)) = rest.strip_prefix('{').and_then(|r| r.split_once('}')) {
            let (after, next) = after.split_at(after.find('{').unwrap_or(after.len()));
            rest = next;
            parts.push(if name == ".." {
                let needle = after.trim_end();
                let after = after.strip_prefix(needle).unwrap_or_default();
                Part { field: Field::Until(Box::new(Finder::new(needle))), after }
            } else {
                Part { field: field(name), after }
            });
        }
        Self { start, parts, losses: Vec::new() }
    }

    /// Names the next loss, computed on what the model learns from.
    pub(super) fn train(self, name: &'static str, span: Span) -> Self {
        self.loss(name, Phase::Train, span)
    }

    /// Names the next loss, a mean over held-out data.
    pub(super) fn validation(self, name: &'static str) -> Self {
        self.loss(name, Phase::Validation, Span::Epoch)
    }

    /// Names the next loss.
    pub(super) fn loss(mut self, name: &'static str, phase: Phase, span: Span) -> Self {
        self.losses.push(Named { name, phase, span });
        self
    }

    /// Whether a line of this shape may start with `byte`.
    pub(super) fn starts(&self, byte: u8) -> bool {
        match self.start.as_bytes().first() {
            Some(first) => *first == byte,
            None => byte.is_ascii_digit() || b"+-.".contains(&byte),
        }
    }

    /// Puts what a line of this shape says into `draft`, which is clear, and returns what follows;
    /// `None` if it is of another.
    pub(super) fn read<'a>(&self, line: &'a str, draft: &mut Draft) -> Option<&'a str> {
        let rest = literal(line, self.start)?;
        let rest = self.fields(rest, draft);
        if rest.is_none() {
            draft.clear();
        }
        rest
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
    Some(number).filter(|number| number.is_finite() && *number >= 0.0)
}

/// What follows `text`, with any white space where it has some.
#[inline]
fn literal<'a>(line: &'a str, text: &str) -> Option<&'a str> {
    line.strip_prefix(text).or_else(|| literal_apart_from_spaces(line, text))
}

fn literal_apart_from_spaces<'a>(line: &'a str, text: &str) -> Option<&'a str> {
    let mut rest = line;
    for byte in text.bytes() {
        rest = match byte {
            b' ' | b'\t' => scan::spaces(rest),
            _ if rest.as_bytes().first() == Some(&byte) => rest.get(1..)?,
            _ => return None,
        };
    }
    Some(rest)
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
        // A template is part of the program: the table test of its grammar shows a slip.
        _ => Field::Number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Loss;

    #[test]
    fn a_template_reads_what_it_describes() {
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
