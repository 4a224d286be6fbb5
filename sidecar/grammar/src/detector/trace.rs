//! What was made of each line, for people who ask why.

use paceline_lines::terminal::prefix::strip;

use super::{Detector, Heading, NO_GRAMMAR, Reading, Stripped};

/// One line, and what was made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// The line without the prefixes of launchers and loggers.
    pub text: String,
    /// The grammar that knows it.
    pub grammar: Option<&'static str>,
    /// What was made of it.
    pub fate: Fate,
    /// The number of observations that were passed on when it was read.
    pub observations: usize,
}

/// What was made of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// No grammar knows it.
    Unknown,
    /// No grammar knows it, although it mentions a loss and a number.
    Mention,
    /// Its epoch applies to the lines below.
    Heading,
    /// It belongs to a grammar, but contains nothing new.
    Known,
    /// A frame of the bar that counts the steps.
    Bar,
    /// It contains losses whose step is in the next frame of the bar, if there is a bar.
    BeforeBar,
    /// It contains an observation.
    Read,
}

impl Detector {
    /// Keeps what is made of each line from now on.
    pub(crate) fn keep_trace(&mut self) {
        self.trace.get_or_insert_default();
    }

    /// Whether it keeps what is made of each line.
    pub(crate) fn keeps_trace(&self) -> bool {
        self.trace.is_some()
    }

    /// Takes what was made of the lines since the last call.
    pub(crate) fn take_trace(&mut self) -> Vec<Traced> {
        self.trace.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Records what was made of the last line, which has given so many observations. `unread` is the
    /// count of unread mentions before it.
    pub(crate) fn record(&mut self, line: &str, unread: u64, observations: usize) {
        let Stripped { text, .. } = strip(line);
        if text.is_empty() {
            return;
        }
        let (grammar, reading) = self.verdict();
        let fate = match reading {
            Reading::Foreign if Heading::parse(text).is_some() => Fate::Heading,
            Reading::Foreign if self.counts().unread > unread => Fate::Mention,
            Reading::Foreign => Fate::Unknown,
            Reading::Known => Fate::Known,
            Reading::Bar { .. } => Fate::Bar,
            Reading::SaysBeforeBar => Fate::BeforeBar,
            Reading::Says => Fate::Read,
        };
        let traced = Traced { text: text.to_owned(), grammar, fate, observations };
        self.trace.get_or_insert_default().push(traced);
    }

    /// The grammar that knew the last line, and what it was.
    fn verdict(&mut self) -> (Option<&'static str>, Reading) {
        if let Some(other) = self.streams.current() {
            return other.verdict();
        }
        let (index, reading) = self.last;
        let is_known = reading != Reading::Foreign && index != NO_GRAMMAR;
        (is_known.then(|| self.name(index)), reading)
    }
}
