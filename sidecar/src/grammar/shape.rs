//! Lines of a fixed shape, written down as templates.

use memchr::memmem::Finder;

use super::draft::Draft;
use super::scan;
use crate::observation::{Phase, Span};

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
    pieces: Vec<Piece>,
    losses: Vec<Named>,
}

#[derive(Debug)]
enum Piece {
    Text(&'static str),
    Until(Box<Finder<'static>>),
    Step,
    Batch,
    Sample,
    Total,
    Epoch,
    Epochs,
    Loss,
    /// A time in units of which a second has so many.
    Seconds(f64),
    Number,
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
        let mut pieces = Vec::new();
        while let Some((name, after)) = rest.strip_prefix('{').and_then(|r| r.split_once('}')) {
            let (literal, next) = after.split_at(after.find('{').unwrap_or(after.len()));
            rest = next;
            if name == ".." {
                let needle = literal.trim_end();
                pieces.push(Piece::Until(Box::new(Finder::new(needle))));
                pieces.push(Piece::Text(literal.strip_prefix(needle).unwrap_or_default()));
            } else {
                pieces.push(field(name));
                pieces.push(Piece::Text(literal));
            }
        }
        Self { start, pieces, losses: Vec::new() }
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
        for piece in &self.pieces {
            rest = match piece {
                Piece::Text(text) => literal(rest, text)?,
                Piece::Until(needle) => {
                    let at = needle.find(rest.as_bytes())?;
                    rest.get(at + needle.needle().len()..)?
                }
                Piece::Step => count(rest, &mut draft.found.step)?,
                Piece::Batch => {
                    draft.found.step_in_epoch = true;
                    count(rest, &mut draft.found.step)?
                }
                Piece::Sample => {
                    draft.found.step_in_epoch = true;
                    draft.found.step_in_samples = true;
                    count(rest, &mut draft.found.step)?
                }
                Piece::Total => count(rest, &mut draft.found.total_steps)?,
                Piece::Epochs => count(rest, &mut draft.found.total_epochs)?,
                Piece::Epoch => number(rest, 1.0, &mut draft.found.epoch)?,
                Piece::Seconds(parts) => number(rest, *parts, &mut draft.found.batch_seconds)?,
                Piece::Number => scan::skip_number(scan::spaces(rest))?,
                Piece::Loss => {
                    let (value, after) = scan::value(scan::spaces(rest))?;
                    let Named { name, phase, span } = losses.next()?;
                    draft.push(name, *phase, *span, value);
                    after
                }
            };
        }
        Some(rest)
    }
}

fn count<'a>(text: &'a str, to: &mut Option<u64>) -> Option<&'a str> {
    let (count, rest) = scan::count(scan::spaces(text))?;
    *to = Some(count);
    Some(rest)
}

/// `of_one` is by how much the number is to be divided.
fn number<'a>(text: &'a str, of_one: f64, to: &mut Option<f64>) -> Option<&'a str> {
    let (value, rest) = scan::number(scan::spaces(text))?;
    *to = (value.is_finite() && value >= 0.0).then_some(value / of_one);
    Some(rest)
}

/// What follows `text`, with any white space where it has some.
fn literal<'a>(line: &'a str, text: &str) -> Option<&'a str> {
    if let Some(rest) = line.strip_prefix(text) {
        return Some(rest);
    }
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

fn field(name: &'static str) -> Piece {
    match name {
        "step" => Piece::Step,
        "batch" => Piece::Batch,
        "sample" => Piece::Sample,
        "total" => Piece::Total,
        "epoch" => Piece::Epoch,
        "epochs" => Piece::Epochs,
        "loss" => Piece::Loss,
        "s" => Piece::Seconds(1.0),
        "ms" => Piece::Seconds(1e3),
        "_" => Piece::Number,
        // A template is part of the program: the table test of its grammar shows a slip.
        other => Piece::Text(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{Loss, Observation};

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
