//! What a job claims of the node by a deadline: its work, or its part of the virtual service.

use super::sharing::{Course, Fate};

/// One job with its deadline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claimant {
    /// Seconds from now.
    pub(super) due: f64,
    /// The most of the node that it can use.
    pub(super) cap: f64,
    pub(super) size: Size,
    /// Whether it runs at its cap from now on, whatever the order of the others.
    pub(super) must: bool,
}

/// What it claims.
#[derive(Clone, Copy, Debug)]
pub(super) enum Size {
    /// This much work by its deadline.
    Known(f64),
    /// What it has in the virtual system, but for a part of that.
    Unknown {
        weight: f64,
        /// The part that it may fall behind.
        theta: f64,
        /// What it has received in the virtual system, and what it has.
        fair: f64,
        used: f64,
        fate: Fate,
    },
}

/// A change of what all claim together at a deadline D: the coefficients of 1, of D and of the volume.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) at: f64,
    pub(super) constant: f64,
    pub(super) rate: f64,
    pub(super) volume: f64,
}

/// What a job of unknown size is to have: its virtual service but for a part.
#[derive(Clone, Copy)]
struct Fair {
    /// The part that it is to have.
    kept: f64,
    weight: f64,
    /// What it has already beyond its due.
    ahead: f64,
    fate: Fate,
}

impl Claimant {
    /// Its deadline, or the earliest end that its cap lets it reach if that is later: what it cannot use by
    /// then is no claim.
    fn end(&self, left: f64) -> f64 {
        self.due.max(left / self.cap)
    }

    /// What must be done of it by a deadline, at which the volume is this.
    pub(super) fn claim(&self, due: f64, volume: f64) -> f64 {
        match self.size {
            Size::Known(left) => {
                let end = self.end(left);
                if end <= due { left } else { (left - self.cap * (end - due)).max(0.0) }
            }
            Size::Unknown { weight, theta, fair, used, fate } => {
                let served = if due >= fate.end {
                    fate.served
                } else if due > fate.capped {
                    weight * fate.capped_volume + self.cap * (due - fate.capped)
                } else {
                    weight * volume
                };
                ((1.0 - theta) * (fair + served) - used).clamp(0.0, self.cap * due)
            }
        }
    }

    /// The same as a function of the deadline, as steps of its coefficients.
    pub(super) fn steps(&self, course: &Course, steps: &mut Vec<Step>) {
        match self.size {
            Size::Known(left) => self.known_steps(left, steps),
            Size::Unknown { weight, theta, fair, used, fate } => {
                let kept = 1.0 - theta;
                let behind = kept * fair - used;
                if behind > 0.0 {
                    // What it is behind, at its cap from now on.
                    let cap = self.cap;
                    steps.push(Step { at: 0.0, constant: 0.0, rate: cap, volume: 0.0 });
                    steps.push(Step {
                        at: behind / cap,
                        constant: behind,
                        rate: -cap,
                        volume: 0.0,
                    });
                }
                let fair = Fair { kept, weight, ahead: (-behind).max(0.0), fate };
                self.fair_steps(&fair, course, steps);
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

    /// What it is to have of its virtual service.
    fn fair_steps(&self, fair: &Fair, course: &Course, steps: &mut Vec<Step>) {
        let Fair { kept, weight, ahead, fate } = *fair;
        if !fate.end.is_finite() || kept * fate.served <= ahead {
            return;
        }
        let first = ahead / kept;
        let crosses = fate.capped < fate.end;
        let shared = if crosses { weight * fate.capped_volume } else { fate.served };
        // At its cap: kept · (shared + cap · (D − capped)) − ahead.
        let capped_constant = if crosses { kept * (shared - self.cap * fate.capped) } else { 0.0 };
        let capped_rate = kept * self.cap;
        if first < shared {
            let begin = course.time_of(first / weight);
            steps.push(Step { at: begin, constant: -ahead, rate: 0.0, volume: kept * weight });
            let volume = -kept * weight;
            steps.push(if crosses {
                Step { at: fate.capped, constant: capped_constant, rate: capped_rate, volume }
            } else {
                Step { at: fate.end, constant: kept * fate.served, rate: 0.0, volume }
            });
        } else {
            let begin = fate.capped + (first - shared) / self.cap;
            let constant = capped_constant - ahead;
            steps.push(Step { at: begin, constant, rate: capped_rate, volume: 0.0 });
        }
        if crosses {
            steps.push(Step {
                at: fate.end,
                constant: kept * fate.served - capped_constant,
                rate: -capped_rate,
                volume: 0.0,
            });
        }
    }
}
