//! The mean of busy times: a bound for jobs that cannot fill the nodes.

use paceline_policy::unit::count;

use super::Task;
use crate::number::{Key, position};

/// Slots of time. More make the bound sharper, and dearer.
const SLOTS: usize = 160;
/// Steps in which the prices are raised towards the best ones.
const STEPS: usize = 120;
/// Beyond so many jobs the bound is not worth what it costs: then it is 0, which is true.
const MOST: usize = 200;

/// No mean completion time on `machines` nodes is below this.
///
/// A job whose work `p` is done at rates `x(t) ≤ s` ends no sooner than `∫ t·x(t) dt / p + p/(2s)`:
/// its mean busy time, and half of what it takes alone. To do all work at the least sum of busy
/// times is a transportation problem. Here its capacity is sold instead: for whatever prices of the
/// slots, what the jobs pay if each buys for itself where it comes cheapest, minus what the slots
/// cost, is no more than the least sum (weak duality). Prices are raised where more is bought than
/// there is. Work in a slot counts as if done at its start, so that rounding to slots lowers the
/// bound and never raises it.
///
/// Source: the mean busy time relaxation of Goemans, Queyranne, Schulz, Skutella and Wang, "Single
/// machine scheduling with release dates", SIAM Journal on Discrete Mathematics 15(2), 2002.
pub fn busy_time(tasks: &[Task], machines: f64) -> f64 {
    if tasks.is_empty() || tasks.len() > MOST {
        return 0.0;
    }
    let grid = Grid::new(tasks, machines);
    let halves: f64 = tasks.iter().map(|task| task.alone() / 2.0 - task.release).sum();
    let mut prices = vec![0.0; SLOTS];
    let mut best = f64::NEG_INFINITY;
    let mut step = 0.0;
    for round in 0..STEPS {
        let (value, bought) = grid.sell(tasks, &prices);
        best = best.max(value);
        let over: Vec<f64> = bought.iter().map(|amount| amount - grid.room).collect();
        let norm: f64 = over.iter().map(|amount| amount * amount).sum();
        if norm <= 0.0 {
            break;
        }
        if round == 0 {
            // Of the order of what waiting costs.
            step = grid.width * count(SLOTS) / norm.sqrt();
        }
        let pace = step / (1.0 + count(round)).sqrt();
        for (price, over) in prices.iter_mut().zip(over) {
            *price = (*price + pace * over / grid.scale).max(0.0);
        }
    }
    ((best + halves) / count(tasks.len())).max(0.0)
}

struct Grid {
    /// Seconds in a slot.
    width: f64,
    /// Work that fits one.
    room: f64,
    /// The mean work of a job: prices are per unit of it.
    scale: f64,
}

impl Grid {
    fn new(tasks: &[Task], machines: f64) -> Self {
        let last = tasks.iter().map(|task| task.release).fold(0.0, f64::max);
        let longest = tasks.iter().map(Task::alone).fold(0.0, f64::max);
        let work: f64 = tasks.iter().map(|task| task.work).sum();
        // By then whoever never idles is done: what cannot run beside others runs after them.
        let end = last + work / machines + longest;
        let width = end / count(SLOTS);
        Self { width, room: machines * width, scale: work / count(tasks.len()) }
    }

    /// What the jobs pay for their busy times and their slots, less what the slots cost; and how
    /// much is bought of each.
    fn sell(&self, tasks: &[Task], prices: &[f64]) -> (f64, Vec<f64>) {
        let mut bought = vec![0.0; SLOTS];
        let mut value = -prices.iter().sum::<f64>() * self.room;
        for task in tasks {
            let first = position(task.release / self.width);
            let mut offers: Vec<(Key, usize)> = prices
                .iter()
                .enumerate()
                .skip(first)
                .map(|(slot, price)| {
                    let start = (count(slot) * self.width).max(task.release);
                    (Key(start / task.work + price), slot)
                })
                .collect();
            offers.sort_unstable();
            let mut left = task.work;
            for (cost, slot) in offers {
                let amount = left.min(task.cap * self.width);
                value += amount * cost.0;
                if let Some(bought) = bought.get_mut(slot) {
                    *bought += amount;
                }
                left -= amount;
                if left <= 0.0 {
                    break;
                }
            }
        }
        (value, bought)
    }
}
