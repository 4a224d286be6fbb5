//! What a line was read as, what of it is reported, and which of its numbers are neither.

use paceline_grammar::{Fate, Traced};
use paceline_lines::observation::{Loss, Observation, Phase, Span};

use super::numbers::{name, numbers};
use crate::merger::{Entry, Kind, Merger, SourceId};

/// How a line is explained.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// Its number in the log, from 1. The frames of a bar may share one.
    pub line: u64,
    /// Its text, without the prefixes of launchers and loggers.
    pub text: String,
    /// The format that knows it.
    pub grammar: Option<&'static str>,
    /// What it was read as.
    pub read: Vec<String>,
    /// What is reported of it.
    pub reported: Vec<Entry>,
    /// Why it was not read, or not all of it is reported.
    pub why: Option<String>,
    /// Its numbers that were not taken, each with the word before it.
    pub not_taken: Vec<(String, String)>,
}

/// Explains the lines of a log in their order.
#[derive(Debug)]
pub struct Explainer {
    merger: Merger,
    source: SourceId,
}

impl Explainer {
    /// An explainer of a job's log.
    pub fn new(mut merger: Merger) -> Self {
        let source = merger.add(Kind::Text);
        Self { merger, source }
    }

    /// Explains the line with this number; `found` are the observations that were passed on when it
    /// was read.
    pub fn line(&mut self, line: u64, traced: Traced, found: &[Observation]) -> Explained {
        let mut why = if found.is_empty() { Some(why_not_read(&traced)) } else { None };
        let (mut read, mut reported) = (Vec::new(), Vec::new());
        for one in found {
            let entries = self.report(one);
            why = why.or_else(|| self.why_not_reported(one, &entries));
            read.extend(facts(one));
            reported.extend(entries);
        }
        let is_heading = traced.fate == Fate::Heading;
        let not_taken = if is_heading { Vec::new() } else { not_taken(&traced.text, found) };
        let Traced { text, grammar, .. } = traced;
        Explained { line, text, grammar, read, reported, why, not_taken }
    }

    /// Explains losses that have waited for their step until the end of the log.
    pub fn late(&mut self, line: u64, found: &Observation) -> Explained {
        let reported = self.report(found);
        let why = "their step has not come until the end of the log".to_owned();
        let text = "(end of the log)".to_owned();
        let read = facts(found);
        Explained {
            line,
            text,
            grammar: None,
            read,
            reported,
            why: Some(why),
            not_taken: Vec::new(),
        }
    }

    fn report(&mut self, found: &Observation) -> Vec<Entry> {
        let mut reported = Vec::new();
        // The times are not those of the run, so no latency is inferred from them.
        self.merger.take(self.source, found, 0.0, |entry| reported.push(entry));
        reported
    }

    /// Why a training loss of the observation is not reported.
    fn why_not_reported(&self, found: &Observation, reported: &[Entry]) -> Option<String> {
        let loss = found.losses.iter().find(|loss| loss.phase == Phase::Train)?;
        if reported.iter().any(|entry| matches!(entry, Entry::Loss(_))) {
            return None;
        }
        let leading = self.merger.ranks().map(|(rank, _, _)| rank).min();
        let chosen = self.merger.hints().loss.as_ref();
        Some(match (chosen, found.rank) {
            (Some(chosen), _) if *chosen != loss.name => {
                format!("its loss is not reported: the chosen one is {chosen:?}")
            }
            (_, Some(rank)) if leading.is_some_and(|leading| leading < rank) => {
                format!("its loss is not reported: rank {rank} is not the lowest that reports one")
            }
            _ if loss.span == Span::Run => {
                "its loss is not reported: a mean over the whole run is not the loss of a step"
                    .to_owned()
            }
            _ => {
                let finest = self.merger.loss_span().map_or("fewer steps", over);
                format!("its loss is not reported: there are losses over {finest}")
            }
        })
    }
}

/// What an observation says.
fn facts(found: &Observation) -> Vec<String> {
    let of = |total: Option<u64>| total.map(|total| format!(" of {total}")).unwrap_or_default();
    let mut facts: Vec<_> = found.losses.iter().map(fact).collect();
    if let Some(step) = found.step {
        let unit = if found.step_in_samples { "sample" } else { "step" };
        let scope = if found.step_in_epoch { " in its epoch" } else { "" };
        facts.push(format!("{unit} {step}{}{scope}", of(found.total_steps)));
    } else if let Some(total) = found.total_steps {
        facts.push(format!("{total} steps in all"));
    }
    if let Some(epoch) = found.epoch {
        facts.push(format!("epoch {epoch}{}", of(found.total_epochs)));
    } else if let Some(total) = found.total_epochs {
        facts.push(format!("{total} epochs in all"));
    }
    if let Some(steps) = found.expected_steps {
        facts.push(format!("{steps} steps expected"));
    }
    if let Some(seconds) = found.batch_seconds {
        facts.push(format!("{seconds} s per batch"));
    }
    if let Some(rank) = found.rank {
        facts.push(format!("rank {rank}"));
    }
    facts
}

fn fact(loss: &Loss) -> String {
    let phase = match loss.phase {
        Phase::Train => "training",
        Phase::Validation => "validation",
        Phase::Test => "test",
    };
    format!("{phase} loss {} ({:?}, over {})", loss.value, loss.name, over(loss.span))
}

fn over(span: Span) -> &'static str {
    match span {
        Span::Step => "one step",
        Span::Interval => "the steps since the line before",
        Span::EpochSoFar => "the epoch so far",
        Span::Epoch => "an epoch",
        Span::Run => "the run",
    }
}

fn why_not_read(traced: &Traced) -> String {
    let grammar = traced.grammar.unwrap_or("a bar");
    match traced.fate {
        Fate::Unknown if numbers(&traced.text).is_empty() => "it has no numbers".to_owned(),
        Fate::Unknown => "it has no known form, and no name of a loss with a number".to_owned(),
        Fate::Mention => {
            "it mentions a loss in no known form, or repeats an earlier one, such as the best"
                .to_owned()
        }
        Fate::Heading => "it is a heading: its epoch applies to the lines below".to_owned(),
        Fate::Known if traced.grammar.is_none() => {
            "it is a part of a longer text, or repeats earlier values".to_owned()
        }
        Fate::Known => {
            format!("it belongs to {grammar}, and has nothing new or is read with a later line")
        }
        Fate::Bar => format!("it is a frame of {grammar} whose counter has not moved"),
        Fate::BeforeBar | Fate::Read => "its step is in the next frame of the bar".to_owned(),
    }
}

/// The numbers of a line that the observations do not contain, each with the word before it.
fn not_taken(line: &str, found: &[Observation]) -> Vec<(String, String)> {
    let taken: Vec<f64> = found.iter().flat_map(taken).collect();
    let mut after = 0;
    let mut left = Vec::new();
    for number in numbers(line) {
        let is_taken = taken.iter().any(|value| is_same(*value, number.value));
        if !is_taken {
            left.push((name(line, after, number.start).to_owned(), number.text.to_owned()));
        }
        after = number.end();
    }
    left
}

/// The numbers of an observation, in all units in which a line may have them.
fn taken(found: &Observation) -> Vec<f64> {
    let count =
        |count: Option<u64>| count.and_then(|count| u32::try_from(count).ok()).map(f64::from);
    let batch = found.batch_seconds;
    let mut taken: Vec<f64> = found.losses.iter().map(|loss| loss.value).collect();
    taken.extend(
        [
            count(found.step),
            count(found.total_steps),
            count(found.expected_steps),
            count(found.total_epochs),
            found.rank.map(f64::from),
            found.epoch,
            found.at,
            found.done,
            found.done.map(|done| done * 100.0),
            batch,
            batch.map(|seconds| seconds * 1e3),
            batch.map(|seconds| 1.0 / seconds),
        ]
        .into_iter()
        .flatten(),
    );
    taken
}

fn is_same(one: f64, other: f64) -> bool {
    one.to_bits() == other.to_bits()
        || (one.is_nan() && other.is_nan())
        || (one - other).abs() <= 1e-9 * one.abs().max(other.abs())
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use paceline_grammar::{Detector, Reader};

    use super::*;
    use crate::merger::Hints;

    fn explained(log: &str) -> Vec<Explained> {
        let mut reader = Reader::new(Detector::default());
        reader.keep_trace();
        let mut found = Vec::new();
        reader.feed(log.as_bytes(), &mut |one| found.push(one.clone()));
        let mut found = VecDeque::from(found);
        let mut explainer = Explainer::new(Merger::new(Hints::default()));
        let traced = reader.trace();
        let explain = |(line, traced): (u64, Traced)| {
            let of_line: Vec<_> = found.drain(..traced.observations).collect();
            explainer.line(line, traced, &of_line)
        };
        (1..).zip(traced).map(explain).collect()
    }

    #[test]
    fn line_is_explained_with_its_grammar_and_unused_numbers() {
        let log = "iter 4: loss 2.5, time 20.00ms, mfu 3.21%\nhello\nbest loss 0.5\nEpoch 3/9\n";
        let lines = explained(log);
        let [first, second, third, heading] = &lines[..] else { panic!("{lines:?}") };
        assert!(heading.why.as_ref().unwrap().starts_with("it is a heading"), "{heading:?}");
        assert_eq!(heading.not_taken, []);
        assert_eq!((first.line, first.grammar, &first.why), (1, Some("nanogpt"), &None));
        assert!(first.read[0].starts_with("training loss 2.5"), "{first:?}");
        assert!(first.reported.contains(&Entry::Loss(2.5)), "{first:?}");
        assert_eq!(first.not_taken, [("mfu".to_owned(), "3.21".to_owned())]);
        assert_eq!(second.why.as_deref(), Some("it has no numbers"));
        assert!(third.why.as_ref().unwrap().contains("repeats an earlier one"), "{third:?}");
        assert_eq!(third.not_taken, [("loss".to_owned(), "0.5".to_owned())]);
    }

    #[test]
    fn loss_that_is_read_but_not_reported_is_explained() {
        let log = "[rank1]: loss: 0.25\n[rank0]: loss: 0.5\n[rank1]: loss: 0.75\n";
        let lines = explained(log);
        assert_eq!(lines[2].reported, []);
        assert!(lines[2].why.as_ref().unwrap().contains("rank 1 is not the lowest"), "{lines:?}");
    }
}
