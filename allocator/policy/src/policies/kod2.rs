//! KOD2: distributed jobs start whole, shrink for better ones, and grow when nobody waits.
//!
//! Source: Jeong, Yu: "Dynamic Resource Adjustment Operator Based on Autoscaling for Improving
//! Distributed Training Job Performance on Kubernetes", KIPS Transactions on Computer and
//! Communication Systems 11(7), 2022, Eq. 1, Algorithms 1 to 3, section 4.1.
//! A job counts by ω′ = least number of workers / what one worker takes of the largest node. The
//! waiting jobs have their turns by ω′, those who starve before all others. A job starts when all
//! its parameter servers and its least number of workers fit (Algorithm 1, lines 5 to 29). If they
//! do not, running jobs of smaller ω′ give workers away, down to their own least number
//! (Algorithm 2). When nobody waits, running jobs grow (Algorithm 3).
//!
//! Where the print is silent or cannot run, the code follows, in both variants: ω′ of one worker's
//! request (K1, K2), compared as it is (K3); whoever is in the frame is looked at anew (K4); the
//! first in line against all that run (K5, K6); real packing per node (K7, K8); the rest goes on
//! behind a job that does not fit (K9); a job starts when its room is really free, which is kept
//! for it until then (K10); any job starves, and only while it waits (K12, K13); nobody grows in a
//! frame that started or scaled anything, nor soon after (K14); I1 to I10, O1 to O8. The variants
//! differ in one point, K9: the resolved one lets nobody pass a starving job that could start in
//! the empty cluster, so that it starts some day. One knot is left: between the frame that makes
//! the plan of the first in line and the one that starts it, an older job of smaller ω′ may begin to
//! starve. It goes first from then on, and if it does not fit beside the plan, neither starts until
//! one of them is taken back.

mod crew;
mod packing;
mod reservation;
mod room;
mod scale_in;
mod scale_out;
mod why;

pub(super) use crew::{Arrivals, Crew, Crews};
pub(super) use packing::Packing;
pub(super) use room::{Amount, Nodes, Room};
pub use why::{Asks, Better, On, Reluctance, Turn, Why};

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::cluster::gangs::{Change, Start, Waiting};
use crate::cluster::{GangFrame, GangPolicy, Scaling};
use crate::params::{ParamError, Parameter, Params, Reader};
use crate::policies;
use crate::policy::Variant;
use crate::unit::{JobId, saturate};

use reservation::{Books, Reservation, Victim};
use room::At;
use scale_in::{Givers, Plan};

/// What can be set.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::new("starve_after", 30.0, "s", "a job that has waited so long is starving"),
    Parameter::new("quiet", 60.0, "s", "so long must nothing change before jobs grow"),
];

/// The policy and its state.
#[derive(Debug)]
pub struct Kod2 {
    settings: Settings,
    arrivals: Arrivals,
    reservations: BTreeMap<JobId, Reservation>,
    /// When anything was started or scaled last.
    changed: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    variant: Variant,
    /// A job that has waited so long is starving.
    starve_after: f64,
    /// So long must nothing be started or scaled before jobs grow.
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
        let crews = Crews::new(frame, &nodes, &mut self.arrivals);
        let books = Books::new(&nodes, &crews, &mut self.reservations);
        let mut pass = Pass {
            settings: self.settings,
            t: frame.t,
            nodes: &nodes,
            crews: &crews,
            books,
            given: BTreeMap::new(),
            scaling: Scaling {
                t: frame.t,
                policy: Self::NAME,
                weights: crews.weights(),
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
    crews: &'a Crews<'a>,
    books: Books<'a>,
    /// Where in `scale_in` a job's workers on a node stand.
    given: BTreeMap<(Victim, At), usize>,
    scaling: Scaling,
}

impl Pass<'_> {
    /// Steps 1 to 3, Algorithm 1, lines 5 to 29.
    fn admit(&mut self) {
        let mut line: Vec<&Crew<'_>> = self.crews.waiting.iter().collect();
        line.sort_by(|a, b| self.by_turn(a, b));
        let givers = Givers::new(&self.crews.running);
        let empty = self.nodes.empty();
        let mut behind: Option<&JobId> = None;
        for (place, crew) in line.into_iter().enumerate() {
            if let Some(job) = behind {
                self.wait(crew, Why::Behind { job: job.clone() });
            } else if let Some(packing) = Packing::find(crew, &self.books.open_to(crew.id())) {
                self.start(crew, &packing);
            } else {
                let why = self.make_room(crew, place == 0, &givers);
                self.wait(crew, why);
                // K9, K12: in print the rest goes on, and a large job may wait for ever.
                let holds_up = self.settings.variant == Variant::Resolved
                    && self.is_starving(crew)
                    && Packing::find(crew, &empty).is_some();
                behind = holds_up.then(|| crew.id());
                if holds_up && Packing::find(crew, &self.books.empty_to(crew.id())).is_none() {
                    // Plans of those behind would hold up the one that holds them up, for ever.
                    self.books.end_all_but(crew.id());
                }
            }
        }
    }

    /// Step 3, lines 10 to 17: what a job that does not fit waits for.
    fn make_room(&mut self, crew: &Crew<'_>, first: bool, givers: &Givers<'_>) -> Why {
        let asks = crew.asks();
        if self.books.keeps_plan_of(crew.id()) {
            return Why::Reserved { asks, on: self.books.planned(crew.id()), asked: 0 };
        }
        if let Some(because) = self.reluctance(crew, first) {
            return Why::NoRoom { asks, because };
        }
        let Some(plan) = Plan::find(crew, givers, &self.books) else {
            let because = Reluctance::Exhausted { raw: crew.raw };
            return Why::NoRoom { asks, because };
        };
        self.books.reserve(crew, &plan.packing, &plan.removals);
        for removal in &plan.removals {
            self.ask(crew, *removal);
        }
        let on = self.books.planned(crew.id());
        Why::Reserved { asks, on, asked: plan.removals.len() }
    }

    /// Why nobody is even asked to give way to a job; `None` if somebody is (lines 5 and 27).
    fn reluctance(&self, crew: &Crew<'_>, first: bool) -> Option<Reluctance> {
        if self.is_starving(crew) {
            return None;
        }
        if !first {
            return Some(Reluctance::NotItsTurn(self.turn(crew)));
        }
        // Of those with the largest ω′, the first by id.
        let top = self.crews.running.iter().rev().max_by(|a, b| a.raw.total_cmp(&b.raw))?;
        let outranked =
            || Reluctance::Outranked { raw: crew.raw, by: top.id().clone(), top: top.raw };
        (crew.raw < top.raw).then(outranked)
    }

    /// Step 4, lines 31 to 36.
    fn grow(&mut self, calm: Option<f64>) {
        let Self { settings: Settings { quiet, .. }, scaling, books, .. } = self;
        let settled = scaling.start.is_empty() && scaling.scale_in.is_empty();
        if !settled || !scaling.waiting.is_empty() || calm.is_some_and(|calm| calm < *quiet) {
            return;
        }
        for (crew, at, count) in scale_out::plan(&self.crews.running, books.free().clone()) {
            let why = Why::Grows { raw: crew.raw, max: crew.most(), calm, quiet: *quiet };
            scaling.scale_out.push(Change {
                job: crew.id().clone(),
                node: self.nodes.name(at).to_owned(),
                count,
                why: policies::Why::Kod2(Box::new(why)),
            });
        }
    }

    fn start(&mut self, crew: &Crew<'_>, packing: &Packing) {
        self.books.start(crew, packing);
        self.scaling.start.push(Start {
            job: crew.id().clone(),
            layout: packing.layout(self.nodes),
            why: policies::Why::Kod2(Box::new(Why::Fits {
                asks: crew.asks(),
                turn: self.turn(crew),
                on: packing.on(),
            })),
        });
    }

    /// Asks one worker of a victim to go for `crew`.
    fn ask(&mut self, crew: &Crew<'_>, (victim, at): (Victim, At)) {
        let Some(giver) = self.crews.running.get(victim) else { return };
        let entries = &mut self.scaling.scale_in;
        let entry = *self.given.entry((victim, at)).or_insert(entries.len());
        if entry == entries.len() {
            let (raw, min) = (giver.raw, giver.gang.worker.min);
            entries.push(Change {
                job: giver.id().clone(),
                node: self.nodes.name(at).to_owned(),
                count: 0,
                why: policies::Why::Kod2(Box::new(Why::GivesWay { raw, min, to: Vec::new() })),
            });
        }
        let Some(change) = entries.get_mut(entry) else { return };
        change.count += 1;
        if let policies::Why::Kod2(why) = &mut change.why
            && let Why::GivesWay { to, .. } = why.as_mut()
            && to.last().is_none_or(|last| last.job != *crew.id())
        {
            let earlier = saturate(giver.submitted - crew.submitted);
            to.push(Better { job: crew.id().clone(), raw: crew.raw, earlier });
        }
    }

    fn wait(&mut self, crew: &Crew<'_>, why: Why) {
        self.scaling
            .waiting
            .push(Waiting { job: crew.id().clone(), why: policies::Why::Kod2(Box::new(why)) });
    }

    /// Step 1: those who starve first, the longest first (K12); then the others by ω′ (K5).
    fn by_turn(&self, a: &Crew<'_>, b: &Crew<'_>) -> Ordering {
        match (self.is_starving(a), self.is_starving(b)) {
            (true, true) => a.by_patience(b),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => a.by_raw(b),
        }
    }

    fn is_starving(&self, crew: &Crew<'_>) -> bool {
        self.t - crew.submitted >= self.settings.starve_after
    }

    fn turn(&self, crew: &Crew<'_>) -> Turn {
        let waited = saturate(self.t - crew.submitted);
        Turn { raw: crew.raw, waited, starve_after: self.settings.starve_after }
    }
}

#[cfg(test)]
mod tests;
