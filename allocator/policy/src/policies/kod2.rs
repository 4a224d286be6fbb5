//! KOD2: distributed jobs start complete, shrink for jobs of larger weight, and grow when none waits.
//!
//! Source: Jeong, Yu: "Dynamic Resource Adjustment Operator Based on Autoscaling for Improving
//! Distributed Training Job Performance on Kubernetes", KIPS Transactions on Computer and
//! Communication Systems 11(7), 2022, Eq. 1, Algorithms 1 to 3, section 4.1.
//! A job's weight is ω′ = least number of workers / what one worker takes of the largest node.
//! Waiting jobs are handled by ω′, starving jobs before all others. A job starts when all its
//! parameter servers and its least number of workers fit (Algorithm 1, lines 5 to 29). If they do
//! not, running jobs of smaller ω′ lose workers, down to their own least number (Algorithm 2). When
//! no job waits, running jobs grow (Algorithm 3).
//!
//! Where the print is silent or cannot run, the code follows, in both variants: ω′ of one worker's
//! request (K1, K2), compared unrounded (K3); every frame is evaluated from the start (K4); the
//! first in line is compared with all running jobs (K5, K6); real packing per node (K7, K8); later
//! jobs may start before one that does not fit (K9); a job starts when its capacity is really free,
//! which is reserved until then (K10); any job starves, and only while it waits (K12, K13); no job
//! grows in a frame that started or scaled anything, nor soon after (K14); I1 to I10, O1 to O8. The
//! variants differ in K9: in the resolved one, no job passes a starving job that could start in the
//! empty cluster, so that it starts eventually. One problem remains. Between the frame that plans
//! the first in line and the one that starts it, an older job of smaller ω′ may begin to starve. It
//! goes first from then on. If it does not fit beside the plan, neither starts until one of them is
//! withdrawn.

mod capacity;
mod gang_plan;
mod packing;
mod reservation;
mod scale_in;
mod scale_out;

pub(super) use capacity::{Amount, FreeCapacity, Nodes};
pub(super) use gang_plan::{Arrivals, GangPlan, GangPlans};
pub(super) use packing::Packing;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::cluster::gangs::{Change, Start, Waiting};
use crate::cluster::{GangFrame, GangPolicy, Scaling};
use crate::params::{ParamError, Parameter, Params, Reader};
use crate::reason;
use crate::reason::kod2::{Beneficiary, Refusal, Span, TaskCounts, Turn, Why};
use crate::unit::{JobId, saturate};
use crate::variant::Variant;

use capacity::NodeIndex;
use reservation::{Reservation, Reservations, Victim};
use scale_in::{Donors, Plan};

/// The parameters.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::new("starve_after", 30.0, "s", "waiting time after which a job counts as starving"),
    Parameter::new("quiet", 60.0, "s", "time without any change before jobs grow"),
];

/// The policy and its state.
#[derive(Debug)]
pub struct Kod2 {
    settings: Settings,
    arrivals: Arrivals,
    reservations: BTreeMap<JobId, Reservation>,
    /// The time of the last start or scaling.
    changed: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    variant: Variant,
    /// Seconds of waiting after which a job counts as starving.
    starve_after: f64,
    /// Seconds without a start or scaling before jobs grow.
    quiet: f64,
}

impl Kod2 {
    /// Its name.
    pub const NAME: &'static str = "kod2";

    /// Checks the parameters: `starve_after` (30 s), `quiet` (60 s).
    pub fn new(variant: Variant, params: &Params) -> Result<Self, ParamError> {
        let params = Reader::new(Self::NAME, PARAMETERS, params)?;
        let starve_after = params.at_least("starve_after", 0.0)?;
        let quiet = params.at_least("quiet", 0.0)?;
        Ok(Self {
            settings: Settings { variant, starve_after, quiet },
            arrivals: Arrivals::default(),
            reservations: BTreeMap::new(),
            changed: None,
        })
    }
}

impl GangPolicy for Kod2 {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn decide(&mut self, frame: &GangFrame) -> Scaling {
        let nodes = Nodes::new(&frame.nodes);
        let gangs = GangPlans::new(frame, &nodes, &mut self.arrivals);
        let reservations = Reservations::new(&nodes, &gangs, &mut self.reservations);
        let mut pass = Pass {
            settings: self.settings,
            t: frame.t,
            nodes: &nodes,
            gangs: &gangs,
            reservations,
            given: BTreeMap::new(),
            scaling: Scaling {
                t: frame.t,
                policy: Self::NAME,
                weights: gangs.weights(),
                start: Vec::new(),
                scale_in: Vec::new(),
                scale_out: Vec::new(),
                waiting: Vec::new(),
            },
        };
        pass.admit();
        let calm = self.changed.map(|changed| saturate(frame.t - changed));
        pass.grow(calm);
        let scaling = pass.scaling;
        if !(scaling.start.is_empty()
            && scaling.scale_in.is_empty()
            && scaling.scale_out.is_empty())
        {
            self.changed = Some(frame.t);
        }
        scaling
    }
}

/// One frame on its way to a scaling.
struct Pass<'a> {
    settings: Settings,
    t: f64,
    nodes: &'a Nodes<'a>,
    gangs: &'a GangPlans<'a>,
    reservations: Reservations<'a>,
    /// The index in `scale_in` of a job's workers on a node.
    given: BTreeMap<(Victim, NodeIndex), usize>,
    scaling: Scaling,
}

impl Pass<'_> {
    /// Steps 1 to 3, Algorithm 1, lines 5 to 29.
    fn admit(&mut self) {
        let mut line: Vec<&GangPlan<'_>> = self.gangs.waiting.iter().collect();
        line.sort_by(|a, b| self.by_turn(a, b));
        let donors = Donors::new(&self.gangs.running);
        let empty = self.nodes.empty();
        let mut behind: Option<&JobId> = None;
        for (place, gang) in line.into_iter().enumerate() {
            if let Some(job) = behind {
                self.wait(gang, Why::Behind { job: job.clone() });
            } else if let Some(packing) =
                Packing::find(gang, &self.reservations.available_to(gang.id()))
            {
                self.start(gang, &packing);
            } else {
                let why = self.make_room(gang, place == 0, &donors);
                self.wait(gang, why);
                // K9, K12: in print, later jobs start, and a large job may wait without end.
                let holds_up = self.settings.variant == Variant::Resolved
                    && self.is_starving(gang)
                    && Packing::find(gang, &empty).is_some();
                behind = holds_up.then(|| gang.id());
                if holds_up
                    && Packing::find(gang, &self.reservations.empty_cluster_for(gang.id()))
                        .is_none()
                {
                    // Plans of the jobs behind would block this job, which blocks them: a deadlock.
                    self.reservations.end_all_but(gang.id());
                }
            }
        }
    }

    /// Step 3, lines 10 to 17: plans removals for a job that does not fit, and says what it waits for.
    fn make_room(&mut self, gang: &GangPlan<'_>, first: bool, donors: &Donors<'_>) -> Why {
        let needs = gang.needs();
        if self.reservations.keeps_plan(gang.id()) {
            return Why::Reserved { needs, on: self.reservations.planned(gang.id()), asked: 0 };
        }
        if let Some(because) = self.refusal(gang, first) {
            return Why::NoRoom { needs, because };
        }
        let Some(plan) = Plan::find(gang, donors, &self.reservations) else {
            let because = Refusal::Exhausted { raw: gang.raw };
            return Why::NoRoom { needs, because };
        };
        self.reservations.reserve(gang, &plan.packing, &plan.removals);
        for removal in &plan.removals {
            self.ask(gang, *removal);
        }
        let on = self.reservations.planned(gang.id());
        Why::Reserved { needs, on, asked: plan.removals.len() }
    }

    /// Why no running job is considered for shrinking; `None` if some are (lines 5 and 27).
    fn refusal(&self, gang: &GangPlan<'_>, first: bool) -> Option<Refusal> {
        if self.is_starving(gang) {
            return None;
        }
        if !first {
            return Some(Refusal::NotItsTurn(self.turn(gang)));
        }
        // Of those with the largest ω′, the first by id.
        let top = self.gangs.running.iter().rev().max_by(|a, b| a.raw.total_cmp(&b.raw))?;
        let outranked = || Refusal::Outranked { raw: gang.raw, by: top.id().clone(), top: top.raw };
        (gang.raw < top.raw).then(outranked)
    }

    /// Step 4, lines 31 to 36.
    fn grow(&mut self, calm: Option<f64>) {
        let Self { settings: Settings { quiet, .. }, scaling, reservations, .. } = self;
        let settled = scaling.start.is_empty() && scaling.scale_in.is_empty();
        if !settled || !scaling.waiting.is_empty() || calm.is_some_and(|calm| calm < *quiet) {
            return;
        }
        for (gang, at, count) in scale_out::plan(&self.gangs.running, reservations.free().clone()) {
            let why = Why::Grows { raw: gang.raw, max: gang.max_workers(), calm, quiet: *quiet };
            scaling.scale_out.push(Change {
                job: gang.id().clone(),
                node: self.nodes.name(at).to_owned(),
                count,
                why: reason::Why::Kod2(Box::new(why)),
            });
        }
    }

    fn start(&mut self, gang: &GangPlan<'_>, packing: &Packing) {
        self.reservations.start(gang, packing);
        self.scaling.start.push(Start {
            job: gang.id().clone(),
            layout: packing.layout(self.nodes),
            why: reason::Why::Kod2(Box::new(Why::Fits {
                needs: gang.needs(),
                turn: self.turn(gang),
                on: packing.on(),
            })),
        });
    }

    /// Requests the removal of one worker of a victim for `gang`.
    fn ask(&mut self, gang: &GangPlan<'_>, (victim, at): (Victim, NodeIndex)) {
        let Some(donor) = self.gangs.running.get(victim) else { return };
        let entries = &mut self.scaling.scale_in;
        let entry = *self.given.entry((victim, at)).or_insert(entries.len());
        if entry == entries.len() {
            let (raw, min) = (donor.raw, donor.spec.worker.min);
            entries.push(Change {
                job: donor.id().clone(),
                node: self.nodes.name(at).to_owned(),
                count: 0,
                why: reason::Why::Kod2(Box::new(Why::Shrinks { raw, min, to: Vec::new() })),
            });
        }
        let Some(change) = entries.get_mut(entry) else { return };
        change.count += 1;
        if let reason::Why::Kod2(why) = &mut change.why
            && let Why::Shrinks { to, .. } = why.as_mut()
            && to.last().is_none_or(|last| last.job != *gang.id())
        {
            let earlier = saturate(donor.submitted - gang.submitted);
            to.push(Beneficiary { job: gang.id().clone(), raw: gang.raw, earlier });
        }
    }

    fn wait(&mut self, gang: &GangPlan<'_>, why: Why) {
        self.scaling
            .waiting
            .push(Waiting { job: gang.id().clone(), why: reason::Why::Kod2(Box::new(why)) });
    }

    /// Step 1: starving jobs first, by waiting time (K12); then the others by ω′ (K5).
    fn by_turn(&self, a: &GangPlan<'_>, b: &GangPlan<'_>) -> Ordering {
        match (self.is_starving(a), self.is_starving(b)) {
            (true, true) => a.by_waiting_time(b),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => a.by_raw(b),
        }
    }

    fn is_starving(&self, gang: &GangPlan<'_>) -> bool {
        self.t - gang.submitted >= self.settings.starve_after
    }

    fn turn(&self, gang: &GangPlan<'_>) -> Turn {
        let waited = saturate(self.t - gang.submitted);
        Turn { raw: gang.raw, waited, starve_after: self.settings.starve_after }
    }
}

#[cfg(test)]
mod tests;
