use proptest::prelude::*;

use super::*;
use crate::signals::samples::{Job, Random};

fn smooth(losses: &[f64]) -> Smooth {
    let job = Job::with_losses(losses, 20.0);
    let smooth = Smooth::new(&Series::new(&job.history).unwrap()).unwrap();
    let best = losses.iter().copied().fold(f64::INFINITY, f64::min);
    Smooth { level: smooth.level_among(Some(best)), ..smooth }
}

fn noisy(steps: u32, noise: f64, level: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut random = Random::new(7);
    (1..=steps).map(|step| level(f64::from(step)) + noise * random.normal()).collect()
}

#[test]
fn a_flat_loss_is_averaged_over_many_reports() {
    let Smooth { level, slope, .. } = smooth(&noisy(4000, 1.0, |_| 5.0));
    // A single report is off by 1, one sample by 0.4.
    assert!((level - 5.0).abs() < 0.12, "{level}");
    assert!(slope.unwrap().abs() < 2e-4, "{slope:?}");
}

#[test]
fn a_line_keeps_its_level_and_slope() {
    let Smooth { level, slope, .. } = smooth(&noisy(2000, 0.0, |step| 10.0 - 0.004 * step));
    assert!((level - 2.0).abs() < 0.003, "{level}");
    assert!((slope.unwrap() + 0.004).abs() < 1e-6, "{slope:?}");
}

#[test]
fn a_bent_curve_is_followed() {
    let curve = |step: f64| 2.0 * (1.0 + step / 50.0).powf(-0.8);
    let Smooth { level, slope, .. } = smooth(&noisy(2000, 0.02, curve));
    assert!((level - curve(2000.0)).abs() < 0.012, "{level} for {}", curve(2000.0));
    let expected = curve(2000.5) - curve(1999.5);
    assert!((slope.unwrap() / expected - 1.0).abs() < 0.8, "{slope:?} for {expected}");
}

#[test]
fn a_loss_that_turned_is_seen_to_rise() {
    let Smooth { level, slope, .. } =
        smooth(&noisy(2000, 0.05, |step| 1.0 + 0.001 * (step - 1500.0).abs()));
    assert!((level - 1.5).abs() < 0.08 && slope.unwrap() > 0.0005, "{level} {slope:?}");
}

#[test]
fn a_spike_hardly_counts() {
    let mut losses = noisy(2000, 0.1, |_| 5.0);
    losses[1700] = 1e6;
    let Smooth { level, .. } = smooth(&losses);
    assert!((level - 5.0).abs() < 0.2, "{level}");
}

#[test]
fn little_is_said_of_few_losses() {
    assert_eq!(smooth(&[4.0]), Smooth { level: 4.0, slope: None, range: (4.0, 4.0), reach: 0.0 });
    let huge = smooth(&[1e280; 100]);
    assert!((huge.level / 1e280 - 1.0).abs() < 1e-9, "{huge:?}");
}

/// What sums of losses may be off by.
const ROUNDING: f64 = 1e-9;

/// The published level after each piece of the losses.
fn published(losses: &[f64], piece: usize, rate: f64) -> Vec<f64> {
    let mut job = Job::new();
    let mut best = f64::INFINITY;
    losses
        .chunks(piece)
        .map(|piece| {
            job.train(piece, rate);
            best = piece.iter().copied().fold(best, f64::min);
            let smooth = Smooth::new(&Series::new(&job.history).unwrap()).unwrap();
            smooth.level_among(Some(best))
        })
        .collect()
}

#[test]
fn steep_loss_stays_above_its_least_value() {
    let losses: Vec<f64> = (1..=200).map(|step| 1.0 / f64::from(step)).collect();
    for rate in [0.5, 2.0, 10.0, 100.0] {
        for (level, step) in published(&losses, 1, rate).into_iter().zip(1..) {
            let (least, most) = (1.0 / f64::from(step) - ROUNDING, 1.0 + ROUNDING);
            assert!((least..=most).contains(&level), "{level} at step {step}");
        }
    }
}

proptest! {
    #[test]
    fn level_stays_among_the_losses(
        losses in prop::collection::vec(-10.0..10.0_f64, 1..300),
        slope in -0.5..0.5_f64,
        piece in 1..9_usize,
        rate in 0.5..50.0_f64,
    ) {
        let losses: Vec<f64> =
            losses.iter().zip(1..).map(|(loss, step)| loss + slope * f64::from(step)).collect();
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for (level, piece) in published(&losses, piece, rate).iter().zip(losses.chunks(piece)) {
            for loss in piece {
                (low, high) = (low.min(*loss), high.max(*loss));
            }
            prop_assert!(low - ROUNDING <= *level && *level <= high + ROUNDING, "{level}");
        }
    }

    #[test]
    fn constant_loss_stays_as_it_is(loss in -1e6..1e6_f64, count in 1..200_usize, rate in 0.5..50.0_f64) {
        for level in published(&vec![loss; count], 3, rate) {
            prop_assert!((level - loss).abs() <= ROUNDING * loss.abs(), "{level} for {loss}");
        }
    }

    #[test]
    fn level_follows_scale_and_shift(
        losses in prop::collection::vec(0.5..2.0_f64, 30..200),
        scale in 0.1..10.0_f64,
        shift in -4.0..4.0_f64,
    ) {
        let moved: Vec<f64> = losses.iter().map(|loss| scale * loss + shift).collect();
        let [one, other] = [&losses, &moved].map(|losses| published(losses, 3, 7.0));
        for (one, other) in one.into_iter().zip(other) {
            let expected = scale * one + shift;
            prop_assert!((other - expected).abs() < 1e-6, "{other} is not {expected}");
        }
    }
}
