//! A probe of the machine's speed during a run.
//!
//! The same work does not always take the same CPU time: other guests may share the machine, and it may
//! throttle when hot. The kernel counts nothing that shows it. So twice a second a thread
//! does a little work and measures the CPU time that it takes. Other threads may delay it, but do not
//! change that figure. It uses 1 % of a CPU.
//!
//! It runs on the busiest CPU. An idle CPU is slow at first, by a third on a virtual machine, and a single
//! job leaves most CPUs idle. If every CPU was nearly idle, it takes no sample. Its 1 % is taken from the
//! jobs alike in every run and in the calibration.

mod busiest;

use std::hint::black_box;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use paceline_api::clock::{thread_cpu_seconds, unix_seconds};
use paceline_policy::unit::{count, counter};

use super::record::SpeedSample;
use busiest::Busiest;

/// How often the probe samples.
const PROBE_INTERVAL: Duration = Duration::from_millis(500);

/// A CPU that was busy for a smaller part of the interval counts as idle.
const MIN_BUSY: f64 = 0.25;

/// The CPU time of one sample, in seconds.
const SAMPLE_SECONDS: f64 = 0.005;

/// The numbers that a pass covers, 1 MiB: like training, a pass needs more than the nearest cache.
const NUMBERS: usize = 262_144;

/// A running probe; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Probe {
    ending: mpsc::Sender<()>,
    thread: JoinHandle<Vec<SpeedSample>>,
}

impl Probe {
    /// Starts the probe's thread.
    pub(crate) fn start() -> Self {
        let (ending, ended) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut numbers: Vec<f32> =
                (0..=u16::MAX).cycle().map(f32::from).take(NUMBERS).collect();
            let mut samples = Vec::new();
            let mut busiest = Busiest::new();
            while ended.recv_timeout(PROBE_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let used = busiest.as_mut().map(Busiest::follow);
                if used == Some(None) {
                    busiest = None;
                }
                if used.flatten().is_none_or(|used| used >= MIN_BUSY * PROBE_INTERVAL.as_secs_f64())
                {
                    let t = unix_seconds();
                    samples.push(SpeedSample { t, passes: sample(&mut numbers) });
                }
            }
            samples
        });
        Self { ending, thread }
    }

    /// Ends the probe and returns its samples, with times in Unix seconds.
    pub(crate) fn end(self) -> Vec<SpeedSample> {
        drop(self.ending);
        self.thread.join().unwrap_or_default()
    }
}

/// The mean of the samples, in passes per second of CPU time.
pub(crate) fn mean_speed(samples: &[SpeedSample]) -> Option<f64> {
    let sum = samples.iter().map(|sample| sample.passes).sum::<f64>();
    (!samples.is_empty()).then(|| sum / count(samples.len()))
}

/// Takes one sample: passes per second of CPU time.
fn sample(numbers: &mut [f32]) -> f64 {
    // Jobs used the caches meanwhile: the first pass only loads the numbers again.
    pass(numbers);
    let (began, mut passes, mut took) = (thread_cpu_seconds(), 0_u64, 0.0);
    while took < SAMPLE_SECONDS {
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
    // Each pass uses the result of the one before, so that the compiler cannot remove one.
    black_box(numbers);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_has_many_passes() {
        let mut numbers = vec![1.0; NUMBERS];
        let speed = sample(&mut numbers);
        assert!(speed > 10.0 && speed.is_finite(), "{speed}");
    }

    #[test]
    fn probe_that_ends_at_once_has_no_samples() {
        let samples = Probe::start().end();
        assert_eq!((samples.len(), mean_speed(&samples)), (0, None));
    }
}
