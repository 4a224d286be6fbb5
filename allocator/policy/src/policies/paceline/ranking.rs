//! Places sorted by a number. The order is kept from run to run.
//!
//! It changes little between two runs. So the places are numbered again in their old order, which takes one
//! pass. If some are out of order then, these are taken out, sorted and put back.

use std::mem;

use super::rank::Rank;

/// The places `0..n` in their last order.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    /// Places without a number are at the end.
    ranks: Vec<Rank>,
    /// Buffers whose memory is used again.
    spare: Vec<Rank>,
    moved: Vec<Rank>,
}

impl Ranking {
    /// Sorts those of the places `0..places` that have a number, of equal ones the smaller place first.
    pub(super) fn sort(&mut self, places: usize, number: impl Fn(usize) -> Option<f64>) -> &[Rank] {
        if self.ranks.len() != places {
            self.ranks = (0..places).map(|place| Rank::new(0.0, place)).collect();
        }
        let (mut last, mut numbered, mut is_sorted) = (Rank::default(), 0, true);
        for rank in &mut self.ranks {
            let place = rank.place();
            *rank = match number(place) {
                Some(number) => {
                    numbered += 1;
                    Rank::new(number, place)
                }
                None => Rank::last(place),
            };
            is_sorted &= *rank >= last;
            last = *rank;
        }
        if !is_sorted {
            self.put_back();
        }
        self.ranks.get(..numbered).unwrap_or_default()
    }

    /// Takes out the ranks that are out of order, and merges them with the others.
    fn put_back(&mut self) {
        let Self { ranks, spare, moved } = self;
        mem::swap(ranks, spare);
        ranks.clear();
        let (mut before, mut last) = (Rank::default(), Rank::default());
        for rank in spare.iter().copied() {
            if rank >= last {
                ranks.push(rank);
                (before, last) = (last, rank);
            } else if rank >= before && !ranks.is_empty() {
                // Only the last one is too high.
                ranks.pop();
                ranks.push(rank);
                moved.push(mem::replace(&mut last, rank));
            } else {
                moved.push(rank);
            }
        }
        moved.sort_unstable();
        ranks.append(moved);
        // Two sorted parts, which a stable sort merges.
        ranks.sort();
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
