//! How much of its room a node really gives to jobs, and what others take of the node.

/// Over a shorter time than this, in seconds, use says little.
pub(super) const LEAST_WINDOW: f64 = 0.4;
/// Figures are smoothed over this many seconds.
const SMOOTH: f64 = 5.0;
/// No node counts as slower than this.
const SLOWEST: f64 = 0.6;
/// What others use counts up to this part of the node.
const MOST_OF_OTHERS: f64 = 0.9;

/// What was seen of a node between two runs of the policy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) seconds: f64,
    /// What training jobs used of it, and what all jobs did.
    pub(super) trained: f64,
    pub(super) used: f64,
    /// What everything used.
    pub(super) node: Option<f64>,
    /// The share that was planned for services.
    pub(super) services: f64,
    /// Whether those that were served could have filled the rest.
    pub(super) can_fill: bool,
}

/// The speed of the virtual node, and the part of the node that others use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speed {
    value: f64,
    others: f64,
}

impl Speed {
    pub(super) const fn new() -> Self {
        Self { value: 1.0, others: 0.0 }
    }

    /// From 0.6 to 1.
    pub(super) fn value(&self) -> f64 {
        self.value
    }

    /// What neither jobs nor anything else known uses.
    pub(super) fn others(&self) -> f64 {
        self.others
    }

    /// Takes in a window in which no job came or left.
    pub(super) fn take(&mut self, seen: Seen) {
        if seen.seconds < LEAST_WINDOW || !seen.used.is_finite() {
            return;
        }
        let part = 1.0 - (-seen.seconds / SMOOTH).exp();
        if let Some(node) = seen.node.filter(|node| node.is_finite()) {
            let others = (node - seen.used).clamp(0.0, MOST_OF_OTHERS);
            self.others += part * (others - self.others);
        }
        let room = (1.0 - self.others - seen.services).max(super::LEAST_ROOM);
        // Jobs that leave CPU idle because they cannot use it say nothing of the node.
        if seen.can_fill {
            let speed = (seen.trained / room).clamp(SLOWEST, 1.0);
            self.value += part * (speed - self.value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(used: f64, node: Option<f64>, can_fill: bool) -> Seen {
        Seen { seconds: 5.0, trained: used, used, node, services: 0.0, can_fill }
    }

    fn after(windows: usize, seen: Seen) -> Speed {
        let mut speed = Speed::new();
        (0..windows).for_each(|_| speed.take(seen));
        speed
    }

    #[test]
    fn speed_follows_what_jobs_use_together() {
        let speed = after(20, seen(0.85, None, true));
        assert!((speed.value() - 0.85).abs() < 1e-6 && speed.others() <= 0.0);
        assert!((after(20, seen(0.1, None, true)).value() - SLOWEST).abs() < 1e-6);
        assert!((after(20, seen(0.2, None, false)).value() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn use_by_others_is_off_the_room_and_does_not_slow_the_node() {
        let speed = after(20, seen(0.7, Some(1.0), true));
        assert!((speed.others() - 0.3).abs() < 1e-6 && (speed.value() - 1.0).abs() < 0.05);
    }

    #[test]
    fn window_that_is_too_short_or_not_a_number_changes_nothing() {
        let mut speed = Speed::new();
        speed.take(Seen { seconds: 0.1, ..seen(0.5, Some(1.0), true) });
        speed.take(seen(f64::NAN, Some(1.0), true));
        assert!(speed.value() >= 1.0 && speed.others() <= 0.0);
    }
}
