//! How much CPU a node really gives to jobs, and how much other processes use.

/// The shortest window, in seconds, over which usage is meaningful.
pub(super) const MIN_WINDOW: f64 = 0.4;
/// The time constant of the smoothing, in seconds.
const SMOOTH: f64 = 5.0;
/// The smallest speed of a node.
const MIN_SPEED: f64 = 0.6;
/// The largest usage by other processes, as a part of the node.
const MAX_OTHERS: f64 = 0.9;

/// The measurements of a node between two runs of the policy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) seconds: f64,
    /// The usage of training jobs, and of all jobs.
    pub(super) trained: f64,
    pub(super) used: f64,
    /// The usage of everything on the node.
    pub(super) node: Option<f64>,
    /// The share that was planned for services.
    pub(super) services: f64,
    /// Whether the served jobs could have used the rest.
    pub(super) can_fill: bool,
}

/// The speed of the virtual node, and the part of the node that other processes use.
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

    /// The usage by processes that are not jobs.
    pub(super) fn others(&self) -> f64 {
        self.others
    }

    /// Records a window in which no job came or left.
    pub(super) fn take(&mut self, seen: Seen) {
        if seen.seconds < MIN_WINDOW || !seen.used.is_finite() {
            return;
        }
        let part = 1.0 - (-seen.seconds / SMOOTH).exp();
        if let Some(node) = seen.node.filter(|node| node.is_finite()) {
            let others = (node - seen.used).clamp(0.0, MAX_OTHERS);
            self.others += part * (others - self.others);
        }
        let room = (1.0 - self.others - seen.services).max(super::MIN_ROOM);
        // Jobs that leave CPU idle because they cannot use it do not show the node's speed.
        if seen.can_fill {
            let speed = (seen.trained / room).clamp(MIN_SPEED, 1.0);
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
        assert!((after(20, seen(0.1, None, true)).value() - MIN_SPEED).abs() < 1e-6);
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
