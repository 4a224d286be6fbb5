//! Which grammar reads the lines, and how many of them.

use super::Detector;
use crate::Grammar;

/// A grammar that has read so many lines more than any other is tried first.
const ENOUGH: u64 = 8;

/// The grammar of most lines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Match {
    /// Its name, such as `keras bar` and `hugging face`; `pattern` for a user's own.
    pub name: &'static str,
    /// Its share of the lines with a new loss or an unread mention of one: between 0 and 1.
    pub confidence: f64,
}

/// Counts of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines and frames, except blank and incomplete ones.
    pub lines: u64,
    /// Lines with a new loss.
    pub losses: u64,
    /// Lines that mention a loss and a number but that no grammar knows.
    pub unread: u64,
}

impl Detector {
    /// The grammar of most lines; `None` until a line contained a loss.
    pub fn matched(&self) -> Option<Match> {
        // Other processes of the log may be the only ones that print losses.
        let mut explained = self.explained.clone();
        for other in self.streams.detectors() {
            explained.iter_mut().zip(&other.explained).for_each(|(all, one)| *all += one);
        }
        let (at, most) = explained.iter().enumerate().rev().max_by_key(|(_, count)| **count)?;
        let name = self.name(at);
        let counts = self.counts();
        (*most > 0).then(|| Match { name, confidence: ratio(*most, counts.losses + counts.unread) })
    }

    /// The name of the grammar at an index of `explained`.
    pub(super) fn name(&self, at: usize) -> &'static str {
        match self.grammars.get(at) {
            Some(grammar) => grammar.name(),
            None if at == self.grammars.len() => self.general.name(),
            None if at == self.grammars.len() + 1 => "pattern",
            None => "table",
        }
    }

    /// The index in `explained` of tables.
    pub(super) fn table(&self) -> usize {
        self.grammars.len() + 2
    }

    /// Counts of lines.
    pub fn counts(&self) -> Counts {
        self.streams.counts().fold(self.counts, |all, one| Counts {
            lines: all.lines + one.lines,
            losses: all.losses + one.losses,
            unread: all.unread + one.unread,
        })
    }

    pub(super) fn explained(&mut self, index: usize) {
        self.counts.losses += 1;
        if let Some(count) = self.explained.get_mut(index) {
            *count += 1;
            let is_particular = index < self.grammars.len();
            if is_particular && *count >= ENOUGH && self.chosen != Some(index) {
                let count = *count;
                let chosen = self.chosen.and_then(|chosen| self.explained.get(chosen));
                if chosen.is_none_or(|chosen| *chosen + ENOUGH <= count) {
                    self.chosen = Some(index);
                }
            }
        }
    }
}

/// `part / all` as a float; above 2^32, the last digits are dropped.
pub(super) fn ratio(part: u64, all: u64) -> f64 {
    let shift = (u64::BITS - all.leading_zeros()).saturating_sub(u32::BITS);
    let float = |count: u64| u32::try_from(count >> shift).map_or(f64::NAN, f64::from);
    float(part) / float(all)
}
