//! Places sorted by a number. The order is kept from run to run.
//!
//! It changes little between two runs. So the places are numbered again in their old order, those that are
//! now out of order are taken out, sorted and put back: one pass where nothing moved.

use std::mem;

use super::rank::Rank;

/// The places `0..n` in their last order.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    /// Places without a number are at the end.
    ranks: Vec<Rank>,
    /// The ranks of the run before, whose memory is used again.
    spare: Vec<Rank>,
    moved: Vec<Rank>,
}

impl Ranking {
    /// Sorts those of the places `0..places` that have a number, of equal ones the smaller place first.
    pub(super) fn sort(&mut self, places: usize, number: impl Fn(usize) -> Option<f64>) -> &[Rank] {
        if self.ranks.len() != places {
            self.ranks = (0..places).map(|place| Rank::new(0.0, place)).collect();
        }
        let Self { ranks, spare, moved } = self;
        mem::swap(ranks, spare);
        ranks.clear();
        ranks.reserve(places);
        let (mut last, mut numbered) = (Rank::default(), 0);
        for place in spare.iter().map(|rank| rank.place()) {
            let number = number(place);
            numbered += usize::from(number.is_some());
            let rank = number.map_or(Rank::last(place), |number| Rank::new(number, place));
            if rank >= last {
                ranks.push(rank);
                last = rank;
            } else if ranks.len() < 2 || ranks.iter().nth_back(1).is_some_and(|of| *of <= rank) {
                // Only the last one is too high.
                ranks.pop();
                ranks.push(rank);
                moved.push(mem::replace(&mut last, rank));
            } else {
                moved.push(rank);
            }
        }
        if !moved.is_empty() {
            moved.sort_unstable();
            ranks.append(moved);
            // Two sorted parts, which a stable sort merges.
            ranks.sort();
        }
        ranks.get(..numbered).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Numbers for a few runs in a row; most stay the same.
    fn runs() -> impl Strategy<Value = Vec<Vec<Option<f64>>>> {
        let number = prop::option::weighted(0.9, 0..20_u32).prop_map(|n| n.map(f64::from));
        let first = prop::collection::vec(number.clone(), 0..40);
        let change = (0..40_usize, number);
        let changes = prop::collection::vec(prop::collection::vec(change, 0..6), 0..6);
        (first, changes).prop_map(|(first, changes)| {
            let mut runs = vec![first];
            for changes in changes {
                let mut next = runs.last().cloned().unwrap_or_default();
                for (at, number) in changes {
                    match next.get_mut(at) {
                        Some(now) => *now = number,
                        None => next.push(number),
                    }
                }
                runs.push(next);
            }
            runs
        })
    }

    proptest! {
        #[test]
        fn kept_ranking_equals_a_new_sort(runs in runs()) {
            let mut ranking = Ranking::default();
            for numbers in runs {
                let known = numbers.iter().enumerate();
                let mut expected: Vec<Rank> =
                    known.filter_map(|(at, number)| Some(Rank::new((*number)?, at))).collect();
                expected.sort_unstable();
                let sorted = ranking.sort(numbers.len(), |at| numbers[at]);
                prop_assert_eq!(sorted, expected);
            }
        }
    }
}
