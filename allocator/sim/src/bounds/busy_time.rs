//! The mean of busy times: a bound for jobs that cannot fill the nodes.

use paceline_policy::unit::count;

use super::Task;
use super::clairvoyant::{Order, schedule};
use super::makespan::makespan;
use super::pieces::Chain;
use crate::number::{Key, position};

/// Slots of time. More slots make the bound tighter and slower to compute.
const SLOTS: usize = 160;
/// Steps in which prices are moved towards the best ones.
const STEPS: u32 = 120;
/// Steps after which the step length is halved.
const STEP_HALVING: f64 = 30.0;
/// With more jobs the bound is not worth its computing time; it is then 0, which is valid.
const MAX_JOBS: usize = 200;

/// No mean completion time on `machines` nodes is below this.
///
/// A job whose work `p` is done at rates `x(t) ≤ s` ends no sooner than `∫ t·x(t) dt / p + p/(2s)`.
/// These are its mean busy time and half of what it takes alone. Doing all work at the least sum of
/// busy times is a transportation problem. Its capacity is priced here. For any prices of time, let
/// each job buy where it is cheapest for itself. What the jobs pay, less what all time costs, is at
/// most the least sum (weak duality). Prices are raised where more is bought than there is.
///
/// Prices are linear between the borders of slots, and so is what a job pays at a moment. Half of
/// each slot is sold at the price of one border, half at that of the other. A whole slot then costs
/// its true price and a part costs no more, so slots lower the bound and never raise it.
///
/// Source: the mean busy time relaxation of Goemans, Queyranne, Schulz, Skutella and Wang, "Single
/// machine scheduling with release dates", SIAM Journal on Discrete Mathematics 15(2), 2002. Steps:
/// Polyak, "Minimization of unsmooth functionals", USSR Computational Mathematics 9(3), 1969.
pub fn busy_time(tasks: &[Task], machines: f64) -> f64 {
    if tasks.is_empty() || tasks.len() > MAX_JOBS {
        return 0.0;
    }
    let halves: f64 = tasks.iter().map(|task| task.alone() / 2.0 - task.release).sum();
    // The sum of any schedule is at least the least one.
    let chains: Vec<Chain> = tasks.iter().map(Chain::whole).collect();
    let rooms = vec![1.0; position(machines).max(1)];
    let known = schedule(&chains, &rooms, Order::Work, f64::INFINITY);
    let target = known.completion * count(tasks.len()) - halves;
    let grid = Grid::new(tasks, machines);
    let mut prices = grid.first_prices(tasks, machines);
    let mut best = f64::NEG_INFINITY;
    for round in 0..STEPS {
        let (value, over) = grid.sell(tasks, &prices);
        best = best.max(value);
        let norm: f64 = over.iter().map(|amount| amount * amount).sum();
        if norm <= 0.0 {
            break;
        }
        let pace = (target - value).max(0.0) / norm / (1.0 + f64::from(round) / STEP_HALVING);
        for (price, over) in prices.iter_mut().zip(over) {
            *price = (*price + pace * over).max(0.0);
        }
    }
    ((best + halves) / count(tasks.len())).max(0.0)
}

/// The earliest end of all work.
fn end_of(tasks: &[Task], machines: f64) -> f64 {
    let first = tasks.iter().map(|task| task.release).fold(f64::INFINITY, f64::min);
    first + makespan(tasks, machines)
}

struct Grid {
    /// Seconds in a slot.
    width: f64,
    /// The work that fits in one slot.
    room: f64,
}

impl Grid {
    fn new(tasks: &[Task], machines: f64) -> Self {
        let last = tasks.iter().map(|task| task.release).fold(0.0, f64::max);
        let longest = tasks.iter().map(Task::alone).fold(0.0, f64::max);
        let work: f64 = tasks.iter().map(|task| task.work).sum();
        // A schedule that never idles is done by then: jobs that cannot run beside others run after
        // them.
        let end = last + work / machines + longest;
        let width = end / count(SLOTS);
        Self { width, room: machines * width }
    }

    fn time(&self, border: usize) -> f64 {
        count(border) * self.width
    }

    /// The first prices: those of the smallest jobs first, as if all jobs were there from the
    /// start. The job in turn is then indifferent to waiting, since the price falls by what waiting
    /// costs. Time that the jobs present cannot fill costs nothing.
    fn first_prices(&self, tasks: &[Task], machines: f64) -> Vec<f64> {
        let mut works: Vec<f64> = tasks.iter().map(|task| task.work).collect();
        works.sort_by(f64::total_cmp);
        let all: f64 = works.iter().sum();
        let end = end_of(tasks, machines);
        let in_turn = |done: f64| {
            let mut sum = 0.0;
            let next = works.iter().find(|work| {
                sum += **work;
                sum >= done
            });
            next.or(works.last()).copied().unwrap_or(f64::INFINITY)
        };
        let mut price = 0.0;
        let mut prices: Vec<f64> = (0..=SLOTS)
            .rev()
            .map(|border| {
                let time = self.time(border);
                if time < end {
                    price += self.width / in_turn(all * time / end);
                }
                let here = tasks.iter().filter(|task| task.release <= time);
                let fill = here.map(|task| task.cap).sum::<f64>() > machines;
                if fill { price } else { 0.0 }
            })
            .collect();
        prices.reverse();
        prices
    }

    /// What the jobs pay for busy times and slots, less the cost of the slots. Also returns the
    /// excess demand at each border.
    fn sell(&self, tasks: &[Task], prices: &[f64]) -> (f64, Vec<f64>) {
        // Half of each slot is at either of its borders.
        let ends = |border: usize| if border == 0 || border == SLOTS { 0.5 } else { 1.0 };
        let rooms: Vec<f64> = (0..=SLOTS).map(|border| self.room * ends(border)).collect();
        let mut value: f64 =
            -rooms.iter().zip(prices).map(|(room, price)| room * price).sum::<f64>();
        let mut over: Vec<f64> = rooms.iter().map(|room| -room).collect();
        for task in tasks {
            let mut offers = self.offers(task, prices);
            offers.sort_unstable_by_key(|offer| (Key(offer.cost), offer.border));
            let mut left = task.work;
            for Offer { cost, border, most } in offers {
                let amount = left.min(most);
                value += amount * cost;
                if let Some(over) = over.get_mut(border) {
                    *over += amount;
                }
                left -= amount;
                if left <= 0.0 {
                    break;
                }
            }
        }
        (value, over)
    }

    /// What a job can buy, border by border from its arrival on.
    fn offers(&self, task: &Task, prices: &[f64]) -> Vec<Offer> {
        let first = position(task.release / self.width);
        // The part of its first slot that is after its arrival.
        let part = (count(first) + 1.0 - task.release / self.width).clamp(0.0, 1.0);
        let whole = task.cap * self.width;
        let mut offers: Vec<Offer> = prices
            .iter()
            .enumerate()
            .skip(first)
            .map(|(border, price)| {
                let cost = self.time(border) / task.work + price;
                Offer { cost, border, most: if border == SLOTS { whole / 2.0 } else { whole } }
            })
            .collect();
        if let [arrival, next, ..] = offers.as_mut_slice() {
            arrival.cost = part * arrival.cost + (1.0 - part) * next.cost;
            arrival.most = part * whole / 2.0;
            next.most -= (1.0 - part) * whole / 2.0;
        }
        offers
    }
}

/// Work offered to a job at one price.
struct Offer {
    cost: f64,
    border: usize,
    most: f64,
}
