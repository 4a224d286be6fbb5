//! The known bars of a program.

use super::counter::Counter;
use super::frame::Frame;
use crate::observation::Loss;

/// Maximum number of remembered bars.
const MAX_BARS: usize = 8;

/// Identifies a bar of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id(u64);

/// One bar, across all epochs in which it is drawn.
#[derive(Debug)]
pub(super) struct Bar {
    pub(super) id: Id,
    /// The letters of its description, which are the same in all its frames.
    letters: String,
    pub(super) total: Option<u64>,
    /// Whether its description allows it to be of training.
    pub(super) trains: bool,
    pub(super) counter: Counter,
    /// The last values (as bits) of its other losses, by name.
    others: Vec<(String, u64)>,
    /// Its counter in the last frame without a loss.
    pub(super) n: Option<u64>,
    pub(super) restarted: bool,
}

/// All bars of one program.
#[derive(Debug, Default)]
pub(super) struct Bars {
    bars: Vec<Bar>,
    /// Number of bars so far.
    count: u64,
}

impl Bars {
    /// The index of the bar of `frame`, and whether this is its first frame. A new bar may replace
    /// the oldest one that is not in `kept`.
    pub(super) fn find(
        &mut self,
        frame: &Frame<'_>,
        trains: bool,
        kept: [Option<Id>; 2],
    ) -> (usize, bool) {
        if let Some(at) = self.bars.iter().position(|bar| bar.is(frame)) {
            return (at, false);
        }
        if let Some((at, bar)) =
            self.bars.iter_mut().enumerate().find(|(_, bar)| bar.goes_on(frame))
        {
            bar.total = frame.total;
            return (at, false);
        }
        if self.bars.len() >= MAX_BARS {
            let is_kept = |bar: &Bar| kept.contains(&Some(bar.id));
            let oldest = self.bars.iter().position(|bar| !is_kept(bar));
            self.bars.remove(oldest.unwrap_or_default());
        }
        self.count += 1;
        self.bars.push(Bar {
            id: Id(self.count),
            letters: letters(frame).map(char::from).collect(),
            total: frame.total,
            trains,
            counter: Counter::default(),
            others: Vec::new(),
            n: None,
            restarted: false,
        });
        (self.bars.len() - 1, true)
    }

    /// The bar at an index.
    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Bar> {
        self.bars.get_mut(at)
    }

    /// A bar other than `id` that is of training and at its start. One with the same total is the same
    /// bar under another name.
    pub(super) fn at_start(&self, id: Id, total: Option<u64>) -> Option<&Bar> {
        let counts = |bar: &&Bar| bar.total.is_some() && bar.total != total;
        let waits = |bar: &&Bar| bar.trains && counts(bar) && bar.counter.n() == 0;
        self.bars.iter().filter(waits).find(|bar| bar.id != id)
    }
}

impl Bar {
    fn is(&self, frame: &Frame<'_>) -> bool {
        self.total == frame.total && self.is_called_as(frame)
    }

    /// Whether `frame` shows this bar with a larger total. A bar of something else begins at 0.
    fn goes_on(&self, frame: &Frame<'_>) -> bool {
        let n = self.counter.n();
        n > 0 && frame.n >= n && frame.total > self.total && self.is_called_as(frame)
    }

    fn is_called_as(&self, frame: &Frame<'_>) -> bool {
        letters(frame).eq(self.letters.bytes())
    }

    /// Whether a loss has changed since it was last shown. Many losses stay in the bar for many
    /// frames.
    pub(super) fn is_new(&mut self, loss: &Loss) -> bool {
        let bits = loss.value.to_bits();
        if let Some((_, before)) = self.others.iter_mut().find(|(name, _)| *name == loss.name) {
            return std::mem::replace(before, bits) != bits;
        }
        // Limits the memory; lines have fewer losses.
        if self.others.len() < 16 {
            self.others.push((loss.name.clone(), bits));
        }
        true
    }
}

fn letters<'a>(frame: &Frame<'a>) -> impl Iterator<Item = u8> + use<'a> {
    frame.desc.bytes().filter(u8::is_ascii_alphabetic)
}
