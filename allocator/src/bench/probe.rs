//! How fast the machine computes while a run lasts.
//!
//! On a machine that is shared with other guests, or that cools itself, the same work takes more CPU
//! time at one moment than at another, and nothing that the kernel counts tells of it. So twice a second
//! a thread does a little work, and counts the CPU time that it takes: who else runs meanwhile delays
//! it, and counts for nothing. It uses one hundredth of a CPU.
//!
//! It goes where most of the work is: a CPU that has had nothing to do is slow at first, by a third on a
//! virtual machine, and a job alone leaves most of them idle. Where none has had much to do, nothing is
//! learnt. That hundredth is the jobs' own, in every run and beside each job alone.

mod busiest;

use std::hint::black_box;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use busiest::Busiest;
use paceline_policy::unit::{count, counter};

use super::record::Beat;
use crate::clock::{thread_cpu_seconds, unix_seconds};

/// How often.
const EVERY: Duration = Duration::from_millis(500);

/// A CPU that was in use for a smaller part of that time is idle.
const IN_USE: f64 = 0.25;

/// For how long at a time, in seconds of CPU time.
const SECONDS: f64 = 0.005;

/// The numbers that a pass goes over, 1 MiB: as training does, it asks more than the nearest cache.
const NUMBERS: usize = 262_144;

/// A machine whose speed is being measured, until this is dropped.
#[derive(Debug)]
pub(crate) struct Probe {
    ending: mpsc::Sender<()>,
    thread: JoinHandle<Vec<Beat>>,
}

impl Probe {
    /// Begins.
    pub(crate) fn start() -> Self {
        let (ending, ended) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut numbers: Vec<f32> =
                (0..=u16::MAX).cycle().map(f32::from).take(NUMBERS).collect();
            let mut beats = Vec::new();
            let mut busiest = Busiest::look();
            while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                let used = busiest.as_mut().map(Busiest::follow);
                if used == Some(None) {
                    busiest = None;
                }
                if used.flatten().is_none_or(|used| used >= IN_USE * EVERY.as_secs_f64()) {
                    let t = unix_seconds();
                    beats.push(Beat { t, passes: beat(&mut numbers) });
                }
            }
            beats
        });
        Self { ending, thread }
    }

    /// What it has found, at times in Unix seconds.
    pub(crate) fn end(self) -> Vec<Beat> {
        drop(self.ending);
        self.thread.join().unwrap_or_default()
    }
}

/// Passes in a second of CPU time, on average.
pub(crate) fn mean_speed(beats: &[Beat]) -> Option<f64> {
    let sum = beats.iter().map(|beat| beat.passes).sum::<f64>();
    (!beats.is_empty()).then(|| sum / count(beats.len()))
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
        let beats = Probe::start().end();
        assert_eq!((beats.len(), mean_speed(&beats)), (0, None));
    }
}
