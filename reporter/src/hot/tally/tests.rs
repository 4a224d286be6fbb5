use std::sync::atomic::AtomicBool;
use std::thread;

use paceline_wire::Direction::{Maximize, Minimize};

use super::*;

fn add(tally: &Tally, loss: f64) {
    assert!(tally.update(|totals, _| totals.add_loss(loss, Minimize)));
}

#[test]
fn best_follows_the_direction_and_max_abs_the_size() {
    for (direction, best) in [(Minimize, -7.0), (Maximize, 5.0)] {
        let tally = Tally::default();
        for loss in [2.0, -7.0, 5.0] {
            assert!(tally.update(|totals, _| totals.add_loss(loss, direction)));
        }
        let totals = tally.read(direction);
        assert_eq!((totals.best, totals.max_abs), (best, 7.0));
        assert_eq!((totals.losses, totals.loss_sum), (3, 0.0));
    }
}

#[test]
fn a_report_within_a_report_takes_another_stripe() {
    let tally = Tally::default();
    add(&tally, 1.0);
    assert!(tally.update(|outer, _| {
        add(&tally, 2.0);
        outer.add_loss(4.0, Minimize);
    }));
    let totals = tally.read(Minimize);
    assert_eq!((totals.losses, totals.loss_sum, totals.best), (3, 7.0, 1.0));
}

#[test]
fn a_reading_during_a_report_holds_what_was_before() {
    let tally = Tally::default();
    add(&tally, 1.0);
    assert!(tally.update(|totals, _| {
        totals.add_loss(2.0, Minimize);
        assert_eq!(tally.read(Minimize).losses, 1);
    }));
    assert_eq!(tally.read(Minimize).losses, 2);
}

#[test]
fn a_report_is_refused_only_when_every_stripe_is_taken() {
    fn nest(tally: &Tally, depth: usize) -> usize {
        let mut stored = 0;
        let mut within = 0;
        if tally.update(|totals, _| {
            totals.step += 1;
            stored = 1;
            within = nest(tally, depth + 1);
        }) {
            assert!(depth < STRIPES);
        }
        stored + within
    }
    let tally = Tally::default();
    assert_eq!(nest(&tally, 0), STRIPES);
    assert_eq!(tally.read(Minimize).step, u64::try_from(STRIPES).unwrap());
}

/// Every loss is 3, so in a torn reading the sum would not be three times the count.
#[test]
fn count_and_sum_agree_in_every_reading_while_threads_report() {
    const THREADS: u32 = 4;
    const EACH: u32 = 50_000;
    let tally = Tally::default();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut before = 0;
            while !done.load(Relaxed) {
                let totals = tally.read(Minimize);
                let count = f64::from(u32::try_from(totals.losses).unwrap());
                assert!((totals.loss_sum - 3.0 * count).abs() < 0.5 && totals.losses >= before);
                before = totals.losses;
            }
        });
        let writers: Vec<_> = (0..THREADS)
            .map(|_| scope.spawn(|| (0..EACH).for_each(|_| add(&tally, 3.0))))
            .collect();
        let ended: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        done.store(true, Relaxed);
        assert!(ended.iter().all(Result::is_ok));
        reader.join().unwrap();
    });
    let totals = tally.read(Minimize);
    let all = THREADS * EACH;
    assert_eq!((totals.losses, totals.loss_sum), (u64::from(all), f64::from(3 * all)));
}
