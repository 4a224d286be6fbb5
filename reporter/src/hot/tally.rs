//! Counts and sums that always agree, although many threads add to them and none ever waits.
//!
//! A reader computes exact means from two readings of a count and its sum, so a reading must have
//! both values of a report or neither. There are several stripes, each with its own totals. A
//! writer claims a free stripe by one compare-and-swap. If another thread has that stripe, it tries
//! the next, and gives up only when all are taken. A job that reports from one thread always uses
//! the first. A stripe has two pages: the writer fills the one that is not being read, then makes
//! it the current one. So a writer that the system has paused in the middle blocks no other thread.

use std::hint::spin_loop;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};

use paceline_wire::Direction;

/// How many threads can be in the middle of a report at the same moment; further reports are dropped.
const STRIPES: usize = 16;
/// The fields of [`Totals`].
const WORDS: usize = 7;

/// What has been reported.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Totals {
    /// The step: one more with each report of a loss, finite or not. The step of a job is the sum of all
    /// stripes, modulo 2^64: a stripe may take from it what others have added.
    pub(crate) step: u64,
    /// Finite losses.
    pub(crate) losses: u64,
    /// The sum of the finite losses.
    pub(crate) loss_sum: f64,
    /// The best of them; meaningless while there are none.
    pub(crate) best: f64,
    /// The largest of them by absolute value.
    pub(crate) max_abs: f64,
    /// Batches that ended.
    pub(crate) batches: u64,
    /// Their duration in nanoseconds. 64 bits hold 584 years.
    pub(crate) batch_nanos: u64,
}

impl Totals {
    /// Adds a finite loss.
    pub(crate) fn add_loss(&mut self, loss: f64, direction: Direction) {
        if self.losses == 0 || direction.better(loss, self.best) {
            self.best = loss;
        }
        self.max_abs = self.max_abs.max(loss.abs());
        self.loss_sum += loss;
        self.losses += 1;
    }

    /// The totals of two stripes.
    fn and(self, other: Self, direction: Direction) -> Self {
        let best = match (self.losses, other.losses) {
            (_, 0) => self.best,
            (0, _) => other.best,
            _ if direction.better(self.best, other.best) => self.best,
            _ => other.best,
        };
        Self {
            step: self.step.wrapping_add(other.step),
            losses: self.losses + other.losses,
            loss_sum: self.loss_sum + other.loss_sum,
            best,
            max_abs: self.max_abs.max(other.max_abs),
            batches: self.batches + other.batches,
            batch_nanos: self.batch_nanos.saturating_add(other.batch_nanos),
        }
    }

    fn to_words(self) -> [u64; WORDS] {
        let Self { step, losses, loss_sum, best, max_abs, batches, batch_nanos } = self;
        let [loss_sum, best, max_abs] = [loss_sum, best, max_abs].map(f64::to_bits);
        [step, losses, loss_sum, best, max_abs, batches, batch_nanos]
    }

    fn from_words(words: [u64; WORDS]) -> Self {
        let [step, losses, loss_sum, best, max_abs, batches, batch_nanos] = words;
        let [loss_sum, best, max_abs] = [loss_sum, best, max_abs].map(f64::from_bits);
        Self { step, losses, loss_sum, best, max_abs, batches, batch_nanos }
    }
}

/// Shared [`Totals`].
#[derive(Debug, Default)]
pub(crate) struct Tally {
    stripes: [Stripe; STRIPES],
}

impl Tally {
    /// Changes the totals of a free stripe; `false` if there is none. `change` also gets the stripe's
    /// number. Its other stores are visible to every reader of the changed totals, and to the next
    /// writer of the same stripe.
    #[inline]
    #[must_use]
    pub(crate) fn update(&self, change: impl FnOnce(&mut Totals, usize)) -> bool {
        let [first, ..] = &self.stripes;
        let claimed = first.claim().map(|version| (0, first, version));
        let Some((at, stripe, version)) = claimed.or_else(|| self.claim_another()) else {
            return false;
        };
        let mut totals = stripe.page(version);
        change(&mut totals, at);
        stripe.publish(version, totals);
        true
    }

    /// Claims another stripe than the first.
    #[cold]
    fn claim_another(&self) -> Option<(usize, &Stripe, u64)> {
        let mut others = self.stripes.iter().enumerate().skip(1);
        others.find_map(|(at, stripe)| Some((at, stripe, stripe.claim()?)))
    }

    /// The totals of all stripes.
    pub(crate) fn read(&self, direction: Direction) -> Totals {
        let empty = Totals::default();
        self.stripes.iter().fold(empty, |all, stripe| all.and(stripe.read(), direction))
    }
}

/// Totals that one thread at a time adds to. Aligned so that two threads share neither a cache line
/// nor the pair of lines that the processor fetches together.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe {
    /// Incremented when a writer claims the stripe and again when it is done, so it is odd in between.
    /// Half of it selects the current page.
    version: AtomicU64,
    pages: [[AtomicU64; WORDS]; 2],
}

impl Stripe {
    /// Claims the stripe, unless another thread has it. Returns the version for [`Stripe::publish`].
    fn claim(&self) -> Option<u64> {
        let version = self.version.load(Relaxed);
        let free = version % 2 == 0;
        let swap = || self.version.compare_exchange(version, version + 1, Acquire, Relaxed);
        (free && swap().is_ok()).then_some(version)
    }

    /// Fills the other page, makes it the current one and releases the stripe.
    fn publish(&self, version: u64, totals: Totals) {
        // A reader that sees one of these words also sees the claim, and so knows that the page is stale.
        fence(Release);
        for (word, value) in self.words(version + 2).iter().zip(totals.to_words()) {
            word.store(value, Relaxed);
        }
        self.version.store(version + 2, Release);
    }

    /// Reads the current page.
    fn read(&self) -> Totals {
        loop {
            let version = self.version.load(Acquire);
            let totals = self.page(version);
            fence(Acquire);
            // The writer after the next fills this page again, and its claim makes the version three
            // more than the even one. So this repeats only if one report ended and another began
            // within these few loads.
            if self.version.load(Relaxed) <= (version & !1) + 2 {
                return totals;
            }
            spin_loop();
        }
    }

    fn page(&self, version: u64) -> Totals {
        Totals::from_words(self.words(version).each_ref().map(|word| word.load(Relaxed)))
    }

    fn words(&self, version: u64) -> &[AtomicU64; WORDS] {
        let [even, odd] = &self.pages;
        if (version / 2) % 2 == 0 { even } else { odd }
    }
}

#[cfg(test)]
mod tests;
