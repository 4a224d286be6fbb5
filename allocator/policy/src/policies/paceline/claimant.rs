//! A job's claim on the node up to a deadline: its work, or a part of its virtual service.

use super::sharing::{Outcome, Trajectory};

/// One job with its deadline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claimant {
    /// Seconds from now.
    pub(super) due: f64,
    /// The most of the node that it can use.
    pub(super) cap: f64,
    pub(super) size: Size,
    /// Whether it must run at its cap from now on, independent of the order.
    pub(super) must: bool,
}

/// The size of the claim.
#[derive(Clone, Copy, Debug)]
pub(super) enum Size {
    /// This much work by its deadline, in node-seconds.
    Known(f64),
    /// Its service in the virtual system, reduced by the part that it may fall behind.
    Unknown {
        weight: f64,
        /// The part that it may fall behind.
        theta: f64,
        /// The service received in the virtual system, and on the real node.
        fair: f64,
        used: f64,
        outcome: Outcome,
    },
}

/// A change of the sum of all claims at a deadline D: the coefficients of 1, of D and of the volume.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) at: f64,
    pub(super) constant: f64,
    pub(super) rate: f64,
    pub(super) volume: f64,
}

/// The claim of a job of unknown size on its virtual service.
#[derive(Clone, Copy)]
struct Fair {
    /// The part of the virtual service that it claims.
    kept: f64,
    weight: f64,
    /// The service that it has received beyond that part.
    ahead: f64,
    outcome: Outcome,
}

impl Claimant {
    /// Its deadline, or the earliest end that its cap allows if that is later. Work beyond its cap is not
    /// claimed.
    fn end(&self, left: f64) -> f64 {
        self.due.max(left / self.cap)
    }

    /// The work of it that must be done by a deadline. `volume` gives the virtual volume then.
    pub(super) fn claim(&self, due: f64, volume: impl Fn() -> f64) -> f64 {
        match self.size {
            Size::Known(left) => {
                let end = self.end(left);
                if end <= due { left } else { (left - self.cap * (end - due)).max(0.0) }
            }
            Size::Unknown { weight, theta, fair, used, outcome } => {
                let served = if due >= outcome.end {
                    outcome.served
                } else if due > outcome.capped {
                    weight * outcome.capped_volume + self.cap * (due - outcome.capped)
                } else {
                    weight * volume()
                };
                ((1.0 - theta) * (fair + served) - used).clamp(0.0, self.cap * due)
            }
        }
    }

    /// The same as a function of the deadline, as steps of its coefficients.
    pub(super) fn steps(&self, trajectory: &Trajectory, steps: &mut Vec<Step>) {
        match self.size {
            Size::Known(left) => self.known_steps(left, steps),
            Size::Unknown { weight, theta, fair, used, outcome } => {
                let kept = 1.0 - theta;
                let behind = kept * fair - used;
                if behind > 0.0 {
                    // The service by which it is behind, at its cap from now on.
                    let cap = self.cap;
                    steps.push(Step { at: 0.0, constant: 0.0, rate: cap, volume: 0.0 });
                    steps.push(Step {
                        at: behind / cap,
                        constant: behind,
                        rate: -cap,
                        volume: 0.0,
                    });
                }
                let fair = Fair { kept, weight, ahead: (-behind).max(0.0), outcome };
                self.fair_steps(&fair, trajectory, steps);
            }
        }
    }

    fn known_steps(&self, left: f64, steps: &mut Vec<Step>) {
        if left <= 0.0 || !self.due.is_finite() {
            return;
        }
        let (cap, due) = (self.cap, self.end(left));
        let begin = due - left / cap;
        steps.push(Step { at: begin.max(0.0), constant: -cap * begin, rate: cap, volume: 0.0 });
        steps.push(Step { at: due, constant: cap * begin + left, rate: -cap, volume: 0.0 });
    }

    /// The steps of its claim on its virtual service.
    fn fair_steps(&self, fair: &Fair, trajectory: &Trajectory, steps: &mut Vec<Step>) {
        let Fair { kept, weight, ahead, outcome } = *fair;
        if !outcome.end.is_finite() || kept * outcome.served <= ahead {
            return;
        }
        let first = ahead / kept;
        let crosses = outcome.capped < outcome.end;
        let shared = if crosses { weight * outcome.capped_volume } else { outcome.served };
        // At its cap: kept · (shared + cap · (D − capped)) − ahead.
        let capped_constant =
            if crosses { kept * (shared - self.cap * outcome.capped) } else { 0.0 };
        let capped_rate = kept * self.cap;
        if first < shared {
            let begin = trajectory.time_of(first / weight);
            steps.push(Step { at: begin, constant: -ahead, rate: 0.0, volume: kept * weight });
            let volume = -kept * weight;
            steps.push(if crosses {
                Step { at: outcome.capped, constant: capped_constant, rate: capped_rate, volume }
            } else {
                Step { at: outcome.end, constant: kept * outcome.served, rate: 0.0, volume }
            });
        } else {
            let begin = outcome.capped + (first - shared) / self.cap;
            let constant = capped_constant - ahead;
            steps.push(Step { at: begin, constant, rate: capped_rate, volume: 0.0 });
        }
        if crosses {
            steps.push(Step {
                at: outcome.end,
                constant: kept * outcome.served - capped_constant,
                rate: -capped_rate,
                volume: 0.0,
            });
        }
    }
}
