//! The lines of other processes in the same log. Each has bars and blocks of its own.

use paceline_lines::terminal::prefix::Stripped;

use super::{Counts, Detector, Patterns};

/// Maximum number of processes with a state of their own, besides the first.
const MAX_OTHERS: usize = 7;

/// The processes of a log, by their prefixes.
#[derive(Debug, Default)]
pub(super) struct Streams {
    /// The first process.
    own: Option<Key>,
    others: Vec<(Key, Detector)>,
    /// The index of the process of the last line, if it is not the first one.
    pub(super) current: Option<usize>,
    /// Whether this is the state of one of several processes.
    is_one: bool,
    /// Counts of processes that are no longer followed.
    gone: Counts,
}

/// What identifies a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Rank(u32),
    /// The checksum of a name.
    Process(u32),
}

impl Streams {
    /// The index of the process of a line; `None` for the first one, and for lines without a prefix.
    #[inline]
    pub(super) fn find(&mut self, line: &Stripped<'_>, patterns: &Patterns) -> Option<usize> {
        if line.rank.is_none() && line.process.is_none() {
            return None;
        }
        self.find_process(line, patterns)
    }

    fn find_process(&mut self, line: &Stripped<'_>, patterns: &Patterns) -> Option<usize> {
        let named = || line.process.map(|name| Key::Process(crc32c::crc32c(name.as_bytes())));
        let key = line.rank.map(Key::Rank).or_else(named).filter(|_| !self.is_one)?;
        if *self.own.get_or_insert(key) == key {
            return None;
        }
        if let Some(at) = self.others.iter().position(|(known, _)| *known == key) {
            return Some(at);
        }
        if self.others.len() >= MAX_OTHERS {
            let (_, oldest) = self.others.remove(0);
            let counts = oldest.counts();
            self.gone.lines += counts.lines;
            self.gone.losses += counts.losses;
            self.gone.unread += counts.unread;
        }
        let mut other = Detector::new(patterns.clone());
        other.streams.is_one = true;
        self.others.push((key, other));
        Some(self.others.len() - 1)
    }

    /// The process of the last line, if it is not the first one.
    pub(super) fn current(&mut self) -> Option<&mut Detector> {
        self.others.get_mut(self.current?).map(|(_, other)| other)
    }

    /// All processes but the first.
    pub(super) fn others(&mut self) -> impl Iterator<Item = &mut Detector> {
        self.others.iter_mut().map(|(_, other)| other)
    }

    /// The states of all processes but the first.
    pub(super) fn detectors(&self) -> impl Iterator<Item = &Detector> {
        self.others.iter().map(|(_, other)| other)
    }

    /// The counts of all processes but the first.
    pub(super) fn counts(&self) -> impl Iterator<Item = Counts> {
        self.others.iter().map(|(_, other)| other.counts()).chain([self.gone])
    }
}
