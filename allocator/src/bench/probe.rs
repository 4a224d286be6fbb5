//! How fast the machine computes while a run lasts.
//!
//! On a machine that is shared with other guests, or that cools itself, the same work takes more CPU
//! time at one moment than at another, and nothing that the kernel counts tells of it. So twice a second
//! a thread does a little work, and counts the CPU time that it takes: who else runs meanwhile delays
//! it, and counts for nothing. It uses one hundredth of a CPU.
//!
//! It goes where most of the work is: a CPU that has had nothing to do is slow at first, by a third on a
//! virtual machine, and a job alone leaves most of them idle. That hundredth is the jobs' own, in every run
//! and beside each job alone.

mod busiest;

use std::hint::black_box;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use busiest::Busiest;
use paceline_policy::unit::{count, counter};

use crate::clock::thread_cpu_seconds;

/// How often.
const EVERY: Duration = Duration::from_millis(500);

/// For how long at a time, in seconds of CPU time.
const SECONDS: f64 = 0.005;

/// The numbers that a pass goes over, 1 MiB: as training does, it asks more than the nearest cache.
const NUMBERS: usize = 262_144;

/// A machine whose speed is being measured, until this is dropped.
#[derive(Debug)]
pub(crate) struct Probe {
    ending: mpsc::Sender<()>,
    thread: JoinHandle<Vec<f64>>,
}

impl Probe {
    /// Begins.
    pub(crate) fn start() -> Self {
        let (ending, ended) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut numbers: Vec<f32> =
                (0..=u16::MAX).cycle().map(f32::from).take(NUMBERS).collect();
            let mut speeds = Vec::new();
            let mut busiest = Busiest::look();
            while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                busiest = busiest.and_then(Busiest::follow);
                speeds.push(beat(&mut numbers));
            }
            speeds
        });
        Self { ending, thread }
    }

    /// Passes in a second of CPU time, on average since it began.
    pub(crate) fn end(self) -> Option<f64> {
        drop(self.ending);
        let speeds = self.thread.join().ok()?;
        (!speeds.is_empty()).then(|| speeds.iter().sum::<f64>() / count(speeds.len()))
    }
}

/// Passes in a second of CPU time.
fn beat(numbers: &mut [f32]) -> f64 {
    // Jobs have had the caches meanwhile: the first pass only brings the numbers back.
    pass(numbers);
    let (began, mut passes, mut took) = (thread_cpu_seconds(), 0_u64, 0.0);
    while took < SECONDS {
        pass(numbers);
        passes += 1;
        took = thread_cpu_seconds() - began;
    }
    counter(passes) / took
}

fn pass(numbers: &mut [f32]) {
    for number in &mut *numbers {
        *number *= 0.5;
        *number += 1.0;
    }
    // The next pass goes on from this one: none can be left out.
    black_box(numbers);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_many_passes() {
        let mut numbers = vec![1.0; NUMBERS];
        let speed = beat(&mut numbers);
        assert!(speed > 10.0 && speed.is_finite(), "{speed}");
    }

    #[test]
    fn it_ends_when_it_is_told_to_and_before_a_beat_nothing_is_known() {
        assert_eq!(Probe::start().end(), None);
    }
}
