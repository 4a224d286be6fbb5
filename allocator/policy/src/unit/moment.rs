use std::time::Duration;

/// Monotonic time since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// The moment that lies `elapsed` after the run began.
    pub const fn since_start(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// The same, from seconds. Values out of range, and NaN, become the nearest valid moment.
    pub fn from_seconds(seconds: f64) -> Self {
        let nearest = if seconds > 0.0 { Duration::MAX } else { Duration::ZERO };
        Self(Duration::try_from_secs_f64(seconds).unwrap_or(nearest))
    }

    /// Time since the run began.
    pub const fn elapsed(self) -> Duration {
        self.0
    }

    /// The same in seconds.
    pub const fn seconds(self) -> f64 {
        self.0.as_secs_f64()
    }

    /// Seconds from `earlier` to this moment; 0 when `earlier` is later.
    pub fn seconds_since(self, earlier: Self) -> f64 {
        self.0.saturating_sub(earlier.0).as_secs_f64()
    }

    /// The moment `seconds` after this one.
    #[must_use]
    pub fn after(self, seconds: f64) -> Self {
        Self(self.0.saturating_add(Self::from_seconds(seconds).0))
    }
}
