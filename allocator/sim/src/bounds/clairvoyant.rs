//! Schedules that know the future: what can be reached, at the other end of a bound.

use super::pieces::Chain;
use crate::number::Key;

/// The figures of a schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reached {
    /// The mean time from arrival to end.
    pub(super) completion: f64,
    /// The sum over jobs of the area under the remaining fall of their losses, until a moment.
    pub(super) area: f64,
}

/// The order in which jobs choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Least remaining work first.
    Work,
    /// Least remaining time alone first.
    Time,
    /// Steepest loss first.
    Density,
}

/// A job that has arrived and is not done.
struct OpenJob<'a> {
    chain: &'a Chain,
    /// Its current piece, and the remaining work of that piece.
    piece: usize,
    left: f64,
    rate: f64,
}

/// Lets jobs choose in an order, again at each arrival and at the end of each piece. Each takes the
/// node with the most room left, and as much of it as it can use. Moving and stopping cost nothing.
/// The result is not a bound: it is one schedule, and there may be a better one.
///
/// `rooms` are the shares of the nodes available to jobs.
pub(super) fn schedule(chains: &[Chain], rooms: &[f64], order: Order, until: f64) -> Reached {
    let mut arrivals: Vec<&Chain> = chains.iter().collect();
    arrivals.sort_by(|a, b| a.release.total_cmp(&b.release));
    let mut arrivals = arrivals.into_iter().peekable();
    let mut open: Vec<OpenJob<'_>> = Vec::new();
    let (mut now, mut area, mut total) = (0.0_f64, 0.0, 0.0);
    loop {
        while let Some(chain) = arrivals.next_if(|chain| chain.release <= now) {
            let left = chain.pieces.first().map_or(0.0, |piece| piece.work);
            open.push(OpenJob { chain, piece: 0, left, rate: 0.0 });
        }
        let next = arrivals.peek().map_or(f64::INFINITY, |chain| chain.release);
        assign_rates(&mut open, rooms, order);
        let ends = open.iter().map(|job| now + job.left / job.rate);
        let then = ends.fold(next, f64::min);
        if then.is_infinite() {
            let completion = total / paceline_policy::unit::count(chains.len());
            return Reached { completion, area };
        }
        // The remaining fall after the scenario's end does not count.
        let counted = (then.min(until) - now).max(0.0);
        for job in &mut open {
            area += counted * (job.to_come() - job.density() * job.rate * counted / 2.0);
            job.advance(now, then);
            if job.piece >= job.chain.pieces.len() {
                total += then - job.chain.release;
            }
        }
        open.retain(|job| job.piece < job.chain.pieces.len());
        now = then;
    }
}

/// Gives each job its rate.
fn assign_rates(open: &mut [OpenJob<'_>], rooms: &[f64], order: Order) {
    // Jobs of equal rank stay in the order of their arrival.
    open.sort_by_key(|job| job.rank(order));
    let mut rooms = rooms.to_vec();
    for job in open {
        let most = rooms.iter_mut().max_by(|a, b| a.total_cmp(b));
        job.rate = most.map_or(0.0, |room| {
            let rate = job.chain.cap.min(*room);
            *room -= rate;
            rate
        });
    }
}

impl OpenJob<'_> {
    fn rank(&self, order: Order) -> Key {
        let later = self.chain.pieces.iter().skip(self.piece + 1);
        let work = || self.left + later.map(|piece| piece.work).sum::<f64>();
        Key(match order {
            Order::Work => work(),
            Order::Time => work() / self.chain.cap,
            Order::Density => -self.density(),
        })
    }

    fn density(&self) -> f64 {
        self.chain.pieces.get(self.piece).map_or(0.0, super::pieces::Piece::density)
    }

    fn to_come(&self) -> f64 {
        let later = self.chain.pieces.iter().skip(self.piece + 1);
        self.left * self.density() + later.map(|piece| piece.drop).sum::<f64>()
    }

    fn advance(&mut self, now: f64, then: f64) {
        // A piece that ends by then is done, even if no time passes.
        let ends = now + self.left / self.rate <= then;
        // A remainder of less than a hundred-millionth of a piece is a rounding error.
        let whole = self.chain.pieces.get(self.piece).map_or(0.0, |piece| piece.work);
        self.left -= self.rate * (then - now);
        if self.rate > 0.0 && (ends || self.left <= 1e-8 * whole) {
            self.piece += 1;
            self.left = self.chain.pieces.get(self.piece).map_or(0.0, |piece| piece.work);
        }
    }
}
