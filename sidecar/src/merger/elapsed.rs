//! Batch latency from the time since the start of the run, where lines print that.

use paceline_lines::number::float;
use paceline_lines::observation::Elapsed;

/// The printed times of one process so far.
///
/// A printed time may be that of the steps since the last line instead, whatever its name is. Such times do not
/// rise with the steps.
#[derive(Debug, Default)]
pub(super) struct RunningTime {
    last: Option<Mark>,
    /// The step at which the time was 0.
    begin: u64,
    /// How often in a row the time has risen.
    rises: u32,
    /// The time has fallen while the steps rose, so it is not counted from the start.
    falls: bool,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    seconds: f64,
    step: u64,
    epoch: Option<u64>,
}

/// Rises in a row after which a time counts as one since the start.
const ENOUGH: u32 = 3;
/// By how much the growth of such a time may differ from that of the steps, as a factor, at its first rise.
const MAX_FACTOR: f64 = 4.0;
/// The same for a time whose name may also be that of a single step.
const MAX_UNNAMED: f64 = 15.0;

impl RunningTime {
    /// Takes the time of a line with its step and epoch. Returns the seconds of a step since the line before.
    pub(super) fn took(&mut self, elapsed: Elapsed, step: u64, epoch: Option<u64>) -> Option<f64> {
        let Elapsed { seconds, is_named } = elapsed;
        let last = self.last.replace(Mark { seconds, step, epoch })?;
        let Some(steps) = step.checked_sub(last.step).filter(|steps| *steps > 0) else {
            // Another run, or the same step.
            (self.begin, self.rises) = (0, 0);
            return None;
        };
        let risen = seconds - last.seconds;
        if risen <= 0.0 {
            // It may begin again with each epoch.
            self.falls |= epoch == last.epoch && risen < 0.0;
            (self.begin, self.rises) = (last.step, 0);
            return None;
        }
        self.rises = self.rises.saturating_add(1);
        let per_step = risen / float(steps);
        // Both begin at 0 in most runs, so their shares of the whole are alike.
        let factor = (risen / seconds) / (float(steps) / float(step.saturating_sub(self.begin)));
        let is_within = |most: f64| (1.0 / most..=most).contains(&factor);
        // Times of single steps may rise a few times by chance.
        let is_usual = self.rises >= ENOUGH && (is_named || is_within(MAX_UNNAMED));
        let is_sure = !self.falls && (is_usual || (is_named && is_within(MAX_FACTOR)));
        Some(per_step).filter(|_| is_sure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(is_named: bool, lines: &[(u64, u64, f64)]) -> Vec<Option<f64>> {
        let mut times = RunningTime::default();
        let read = |(epoch, step, seconds): &(u64, u64, f64)| {
            times.took(Elapsed { seconds: *seconds, is_named }, *step, Some(*epoch))
        };
        lines.iter().map(read).collect()
    }

    #[test]
    fn time_since_the_start_gives_the_time_of_a_step() {
        let lines = [(1, 0, 21.0), (1, 100, 121.0), (1, 300, 421.0)];
        assert_eq!(took(true, &lines), [None, Some(1.0), Some(1.5)]);
        // In a resumed run the steps begin later than the time.
        let lines = [(9, 9000, 2.0), (9, 9100, 102.0), (9, 9200, 202.0), (9, 9300, 302.0)];
        assert_eq!(took(true, &lines), [None, None, None, Some(1.0)]);
        let lines = [(1, 1, 1.0), (1, 2, 2.0), (1, 3, 3.0), (1, 4, 4.5)];
        assert_eq!(took(false, &lines), [None, None, None, Some(1.5)]);
    }

    #[test]
    fn time_of_the_last_steps_is_not_one_since_the_start() {
        let lines = [(1, 100, 12.0), (1, 200, 12.5), (1, 300, 11.5), (1, 400, 12.0)];
        assert_eq!(took(true, &lines), [None; 4]);
        let lines =
            [(1, 1, 0.25), (1, 2, 0.5), (1, 3, 0.25), (1, 4, 0.5), (1, 5, 1.0), (1, 6, 2.0)];
        assert_eq!(took(false, &lines), [None; 6]);
        assert_eq!(took(true, &lines).split_off(3), [None; 3]);
        let lines = [(1, 997, 0.5), (1, 998, 0.51), (1, 999, 0.52), (1, 1000, 0.53)];
        assert_eq!(took(false, &lines), [None; 4]);
    }

    #[test]
    fn time_may_begin_again_with_an_epoch() {
        let lines = [(1, 100, 100.0), (1, 200, 200.0), (2, 210, 5.0), (2, 220, 15.0)];
        assert_eq!(took(true, &lines), [None, Some(1.0), None, Some(1.0)]);
        // Another run.
        let lines = [(1, 10, 10.0), (1, 20, 20.0), (1, 10, 12.0), (1, 20, 24.0)];
        assert_eq!(took(true, &lines), [None, Some(1.0), None, Some(1.2)]);
    }
}
