//! The bars that have been drawn.

use super::counter::Counter;
use super::frame::Frame;
use crate::observation::Loss;

/// So many bars are remembered.
const MOST: usize = 8;

/// Which bar of a program one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id(u64);

/// One bar, in all epochs in which it is drawn.
#[derive(Debug)]
pub(super) struct Bar {
    pub(super) id: Id,
    /// The letters of its text, which stay the same between its frames.
    letters: String,
    pub(super) total: Option<u64>,
    /// Whether it is of training, as far as its text says.
    pub(super) trains: bool,
    pub(super) counter: Counter,
    /// The losses other than the step's own that it has shown, by name.
    others: Vec<(String, u64)>,
    /// Where it stood without a loss.
    pub(super) n: Option<u64>,
    pub(super) restarted: bool,
}

/// All bars of one program.
#[derive(Debug, Default)]
pub(super) struct Bars {
    bars: Vec<Bar>,
    /// How many there have been.
    count: u64,
}

impl Bars {
    /// Where the bar is that `frame` is of, and whether this is its first frame. Of those that are
    /// not to be `kept`, the oldest makes room.
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
        if self.bars.len() >= MOST {
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

    /// The bar at a place.
    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Bar> {
        self.bars.get_mut(at)
    }

    /// Another bar than `id` that is of training and stands at its start.
    pub(super) fn at_start(&self, id: Id) -> Option<&Bar> {
        let waits = |bar: &&Bar| bar.trains && bar.total.is_some() && bar.counter.n() == 0;
        self.bars.iter().filter(waits).find(|bar| bar.id != id)
    }
}

impl Bar {
    fn is(&self, frame: &Frame<'_>) -> bool {
        self.total == frame.total && self.is_called_as(frame)
    }

    /// Whether `frame` shows it with a larger total: a bar of something else begins at 0.
    fn goes_on(&self, frame: &Frame<'_>) -> bool {
        let n = self.counter.n();
        n > 0 && frame.n >= n && frame.total > self.total && self.is_called_as(frame)
    }

    fn is_called_as(&self, frame: &Frame<'_>) -> bool {
        letters(frame).eq(self.letters.bytes())
    }

    /// Whether a loss that stays in the bar for many frames was not there before.
    pub(super) fn is_new(&mut self, loss: &Loss) -> bool {
        let bits = loss.value.to_bits();
        if let Some((_, before)) = self.others.iter_mut().find(|(name, _)| *name == loss.name) {
            return std::mem::replace(before, bits) != bits;
        }
        // A line has no more losses than these.
        if self.others.len() < 16 {
            self.others.push((loss.name.clone(), bits));
        }
        true
    }
}

fn letters<'a>(frame: &Frame<'a>) -> impl Iterator<Item = u8> + use<'a> {
    frame.desc.bytes().filter(u8::is_ascii_alphabetic)
}
