//! A stretch of a job's past.

/// A stretch of a job's past: what was reported from one sample to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bucket {
    /// Steps since the start of the record, at the beginning of the bucket.
    pub(crate) from: f64,
    /// The same at its end.
    pub(crate) to: f64,
    /// Time of the last report before it, in seconds since the start.
    pub(crate) from_at: f64,
    /// Time of its own last report, in seconds since the start.
    pub(crate) to_at: f64,
    /// Seconds within it without training.
    pub(crate) paused: f64,
    /// The longest time without a step within it, announced pauses left out.
    pub(crate) gap: f64,
    /// Number of losses.
    pub(crate) count: f64,
    /// Their mean; 0 if there is none.
    pub(crate) mean: f64,
    /// Standard deviation of one loss around its neighbours.
    pub(crate) scatter: f64,
    /// Number of estimates whose mean is [`Bucket::scatter`].
    pub(crate) triples: f64,
    /// Number of samples that it was made from.
    pub(crate) samples: f64,
}

impl Bucket {
    /// The mean position of its losses, in steps.
    pub(crate) fn middle(&self) -> f64 {
        f64::midpoint(self.from, self.to) + 0.5
    }

    /// How many steps it holds.
    pub(crate) fn steps(&self) -> f64 {
        self.to - self.from
    }

    /// Seconds of training.
    pub(crate) fn active(&self) -> f64 {
        (self.to_at - self.from_at - self.paused).max(0.0)
    }

    /// Adds the bucket that follows.
    pub(crate) fn absorb(&mut self, next: &Self) {
        let mix = |a: f64, weight_a: f64, b: f64, weight_b: f64| {
            let part = weight_b / (weight_a + weight_b);
            // Computed so that it cannot overflow.
            if part.is_finite() { a * (1.0 - part) + b * part } else { a }
        };
        self.mean = mix(self.mean, self.count, next.mean, next.count);
        self.scatter = mix(self.scatter, self.triples, next.scatter, next.triples);
        self.to = next.to;
        self.to_at = next.to_at;
        self.paused += next.paused;
        self.gap = self.gap.max(next.gap);
        self.count += next.count;
        self.triples += next.triples;
        self.samples += next.samples;
    }
}
