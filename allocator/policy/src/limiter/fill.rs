//! Weighted water-filling.

/// The most that one taker can take, and its weight, which is above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Taker {
    pub(super) room: f64,
    pub(super) weight: f64,
}

/// Divides `pool` by weight. What exceeds one taker's room goes to the others. Either the pool or all
/// room is used up.
pub(super) fn fill(pool: f64, takers: &[Taker]) -> Vec<f64> {
    let mut given = vec![0.0; takers.len()];
    // Most of the time, no taker has room left.
    if takers.iter().all(|taker| taker.room <= 0.0) {
        return given;
    }
    let mut order: Vec<(usize, Taker)> = takers.iter().copied().enumerate().collect();
    // Takers are handled in the order in which they fill up, so that each one's rest is known.
    order.sort_by(|(_, a), (_, b)| (a.room / a.weight).total_cmp(&(b.room / b.weight)));
    let mut pool = pool;
    let mut weights: f64 = takers.iter().map(|taker| taker.weight).sum();
    for (at, Taker { room, weight }) in order {
        // Rounding may have removed the last weights: no part is larger than the pool.
        let part = if weights > weight { pool * (weight / weights) } else { pool };
        let gets = room.min(part);
        if let Some(given) = given.get_mut(at) {
            *given = gets;
        }
        pool -= gets;
        weights -= weight;
    }
    given
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn takers(all: &[(f64, f64)]) -> Vec<Taker> {
        all.iter().map(|(room, weight)| Taker { room: *room, weight: *weight }).collect()
    }

    #[test]
    fn share_beyond_a_takers_room_goes_to_others_by_weight() {
        let given = fill(0.6, &takers(&[(1.0, 2.0), (0.1, 5.0), (1.0, 3.0)]));
        for (given, expected) in given.into_iter().zip([0.2, 0.1, 0.3]) {
            assert!((given - expected).abs() < 1e-12, "{given} {expected}");
        }
    }

    proptest! {
        #[test]
        fn the_pool_or_all_room_is_used_up(
            pool in 0.0..=1.0,
            all in prop::collection::vec((0.0..=1.0, 1e-9..1e6), 1..12),
        ) {
            let takers = takers(&all);
            let given = fill(pool, &takers);
            for (given, taker) in given.iter().zip(&takers) {
                prop_assert!((0.0..=taker.room).contains(given));
            }
            let room: f64 = takers.iter().map(|taker| taker.room).sum();
            prop_assert!((given.iter().sum::<f64>() - pool.min(room)).abs() < 1e-9);
        }

        #[test]
        fn unfilled_taker_gets_no_less_per_weight_than_another(
            pool in 0.0..=1.0,
            all in prop::collection::vec((0.0..=1.0, 0.1..10.0), 2..12),
        ) {
            let takers = takers(&all);
            let given = fill(pool, &takers);
            let level = |at: usize| given[at] / takers[at].weight;
            for a in (0..takers.len()).filter(|at| given[*at] < takers[*at].room - 1e-9) {
                for b in 0..takers.len() {
                    prop_assert!(level(a) >= level(b) - 1e-9);
                }
            }
        }
    }
}
