//! The known bars of a program.

use paceline_lines::observation::Loss;

use super::counter::Counter;
use super::desc::Desc;
use super::frame::Frame;

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
    /// The pass over held-out data in which they were shown: the epoch in its description as bits, and its number.
    pass: Option<(Option<u64>, u32)>,
    /// Its counter in the last frame without a loss.
    pub(super) n: Option<u64>,
    /// The epoch in its description then.
    pub(super) epoch: Option<f64>,
    pub(super) restarted: bool,
    /// The epoch as bits and the step in the description of the last frame.
    pub(super) inner: Option<(u64, u64)>,
    /// The epoch in the description of the last frame, and its counter.
    last: Option<(f64, u64)>,
    /// Both have moved together, so the bar counts epochs.
    pub(super) of_epochs: bool,
    /// Whether it counts epochs if it counts up to their number.
    epochs: Epochs,
    ends: Ends,
}

/// Whether a bar whose total is the number of epochs may count them.
#[derive(Debug, Default, PartialEq, Eq)]
enum Epochs {
    #[default]
    Possible,
    /// The counter has been beyond the epoch.
    Beyond,
}

/// What is known of the last frames of a bar, where a log has kept only these.
#[derive(Debug, Default)]
struct Ends {
    /// There was a frame that was not a last one.
    others: bool,
    /// The frame before was a last one.
    before: bool,
    /// The epoch of the frame before, by its description or by a heading.
    epoch: Option<f64>,
    /// A checksum of the losses in the frame before, and its rate as bits.
    shown: (u32, Option<u64>),
}

impl Ends {
    /// Takes a frame with losses. Returns whether it differs from the one before.
    fn show(&mut self, frame: &Frame<'_>) -> bool {
        let losses =
            crc32c::crc32c_append(crc32c::crc32c(frame.desc.as_bytes()), frame.postfix.as_bytes());
        let shown = (losses, frame.seconds.map(f64::to_bits));
        std::mem::replace(&mut self.shown, shown) != shown
    }
}

/// All bars of one program.
#[derive(Debug, Default)]
pub(super) struct Bars {
    all: Vec<Bar>,
    /// Number of bars so far.
    count: u64,
    /// The index of the bar of the last frame.
    last: usize,
}

impl Bars {
    /// The index of the bar of the last frame, if `frame`, which has the same description, is of it, too.
    #[inline]
    pub(super) fn last(&self, frame: &Frame<'_>) -> Option<usize> {
        let bar = self.all.get(self.last)?;
        (bar.total == frame.total).then_some(self.last)
    }

    /// The index of the bar of `frame`, and whether this is its first frame. A new bar may replace
    /// the oldest one that is not in `kept`.
    pub(super) fn find(
        &mut self,
        frame: &Frame<'_>,
        trains: bool,
        kept: [Option<Id>; 2],
    ) -> (usize, bool) {
        let (at, is_new) = self.find_or_add(frame, trains, kept);
        self.last = at;
        (at, is_new)
    }

    fn find_or_add(
        &mut self,
        frame: &Frame<'_>,
        trains: bool,
        kept: [Option<Id>; 2],
    ) -> (usize, bool) {
        if let Some(at) = self.all.iter().position(|bar| bar.is(frame)) {
            return (at, false);
        }
        if let Some((at, bar)) = self.all.iter_mut().enumerate().find(|(_, bar)| bar.goes_on(frame))
        {
            bar.total = frame.total;
            return (at, false);
        }
        if self.all.len() >= MAX_BARS {
            let is_kept = |bar: &Bar| kept.contains(&Some(bar.id));
            let oldest = self.all.iter().position(|bar| !is_kept(bar));
            self.all.remove(oldest.unwrap_or_default());
        }
        self.count += 1;
        self.all.push(Bar {
            id: Id(self.count),
            letters: letters(frame).map(char::from).collect(),
            total: frame.total,
            trains,
            counter: Counter::default(),
            others: Vec::new(),
            pass: None,
            n: None,
            epoch: None,
            restarted: false,
            inner: None,
            last: None,
            of_epochs: false,
            epochs: Epochs::default(),
            ends: Ends::default(),
        });
        (self.all.len() - 1, true)
    }

    /// The bar at an index.
    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Bar> {
        self.all.get_mut(at)
    }

    /// A bar other than `id` that is of training and at its start. One with the same total is the same
    /// bar under another name.
    pub(super) fn at_start(&self, id: Id, total: Option<u64>) -> Option<&Bar> {
        let counts = |bar: &&Bar| bar.total.is_some() && bar.total != total;
        let waits = |bar: &&Bar| bar.trains && counts(bar) && bar.counter.n() == 0;
        // With another description, it has moved on.
        let goes_on = |bar: &&Bar| {
            let moved = |other: &Bar| other.total == bar.total && other.counter.n() > 0;
            self.all.iter().any(|other| other.id != bar.id && moved(other))
        };
        self.all.iter().filter(waits).find(|bar| bar.id != id && !goes_on(bar))
    }
}

impl Bar {
    /// Whether a frame with losses is that of another process: its description names the same step of the epoch as
    /// the frame before, at the same count.
    pub(super) fn is_of_another(&mut self, frame: &Frame<'_>, desc: Desc) -> bool {
        let (Some((step, of)), Some(epoch)) = (desc.step_of, desc.epoch) else { return false };
        if Some(of) != frame.total {
            return false;
        }
        let inner = Some((epoch.to_bits(), step));
        std::mem::replace(&mut self.inner, inner) == inner && frame.n == self.counter.n()
    }

    /// Compares the epoch in the description with the counter `n`. Where both move on together, the
    /// bar counts epochs, and each of them is a step of the run. `is_same`: both count up to the same number.
    pub(super) fn compare(&mut self, epoch: f64, n: u64, is_same: bool) {
        let count = u32::try_from(n).map_or(f64::INFINITY, f64::from);
        if is_same && self.epochs == Epochs::Possible {
            self.of_epochs = (count - epoch).abs() <= 1.0;
            self.epochs = if self.of_epochs { Epochs::Possible } else { Epochs::Beyond };
            self.last = Some((epoch, n));
            return;
        }
        let is_near = count >= epoch && count - epoch <= 1.0;
        match self.last.replace((epoch, n)) {
            Some((last, before)) if last < epoch => {
                let moves = epoch - last <= 1.0 && Some(n) == before.checked_add(1);
                self.of_epochs = is_near && (moves || self.of_epochs);
            }
            Some((_, before)) => self.of_epochs &= is_near && before <= n,
            None => {}
        }
    }

    /// Begins another pass where the log shows only the last frame of each, or where the epoch in the
    /// description or in a heading has moved on. A bar of something else may have no loss and the same name. The same
    /// frame again is a redraw. `ended`: the line ends with the frame. `tells`: it has a loss.
    pub(super) fn renew(
        &mut self,
        frame: &Frame<'_>,
        epoch: Option<f64>,
        ended: bool,
        tells: bool,
    ) {
        let is_last = ended && frame.total.is_none_or(|total| frame.n >= total);
        if !tells {
            self.ends.others |= !is_last;
            return;
        }
        let later = epoch.zip(self.ends.epoch).is_some_and(|(now, before)| now > before);
        let is_new = !self.ends.others && self.ends.show(frame);
        let again = later || (is_new && frame.total.is_some_and(|total| total > 1));
        if is_last && self.ends.before && frame.n == self.counter.n() && again {
            self.counter.restart();
        }
        self.ends.others |= !is_last;
        (self.ends.before, self.ends.epoch) = (is_last, epoch.or(self.ends.epoch));
    }

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

    /// Takes a frame of held-out data. In another pass, an equal loss is new.
    pub(super) fn hold_out(&mut self, epoch: Option<f64>) {
        let pass = (epoch.map(f64::to_bits), self.counter.restarts());
        if self.pass.replace(pass).is_some_and(|before| before != pass) {
            self.others.clear();
        }
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
