//! How fast the machine computes just now.
//!
//! On a machine that is shared with other guests, or that cools itself, the same work takes more CPU
//! time at one moment than at another, and nothing that the kernel counts tells of it. So before and
//! after each run every CPU does the same small work for a moment.

use std::hint::black_box;
use std::thread;

use anyhow::Context;
use paceline_policy::unit::{count, counter};

use crate::clock::Clock;

/// For how long, in seconds: many times what the kernel lets one thread run at a stretch.
const SECONDS: f64 = 0.3;

/// The numbers that a pass goes over, 1 MiB: as training does, it asks more than the nearest cache.
const NUMBERS: usize = 262_144;

/// Passes a second that a CPU does while all of them do: the mean over the CPUs.
pub(crate) async fn speed() -> anyhow::Result<f64> {
    tokio::task::spawn_blocking(measure).await.context("the machine's speed was not measured")
}

fn measure() -> f64 {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let each: Vec<_> = (0..cpus).map(|_| thread::spawn(one)).collect();
    let speeds = each.into_iter().filter_map(|thread| thread.join().ok());
    speeds.sum::<f64>() / count(cpus)
}

/// Passes a second of one CPU.
fn one() -> f64 {
    let clock = Clock::start();
    let mut numbers: Vec<f32> = (0..=u16::MAX).cycle().map(f32::from).take(NUMBERS).collect();
    let mut passes = 0_u64;
    while clock.now().seconds() < SECONDS {
        for number in &mut numbers {
            *number *= 0.5;
            *number += 1.0;
        }
        // The next pass goes on from this one: none can be left out.
        black_box(&mut numbers);
        passes += 1;
    }
    counter(passes) / clock.now().seconds()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cpu_passes_many_times() {
        let speed = measure();
        assert!(speed > 10.0 && speed.is_finite(), "{speed}");
    }
}
