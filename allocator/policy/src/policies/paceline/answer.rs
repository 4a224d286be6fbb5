//! A run put into a decision, with the reason of each job.

use super::claimant::Claimant;
use super::limits::{Beyond, limits};
use super::sharing::{Party, level};
use super::{Paceline, Run, Why, outlook, timing};
use crate::decision::{Decision, JobDecision};
use crate::per_job::PerJob;
use crate::policies;
use crate::unit::{JobId, Share};

/// Before so many losses of a job, its forecast is looked at again soon.
const FEW_LOSSES: usize = 8;

impl Paceline {
    pub(super) fn answer(&self, run: &Run<'_>) -> Decision {
        let mut decision = Decision {
            t: run.frame.t,
            policy: Self::NAME,
            interval: self.next(run),
            limits: PerJob::new(),
            terminate: Vec::new(),
            migrate: Vec::new(),
            place: Vec::new(),
            waiting: Vec::new(),
            jobs: PerJob::new(),
        };
        // Both are in the order of the members.
        let mut trained = self.trained(run).peekable();
        let mut serving = serving(run).peekable();
        let mut limits = Vec::with_capacity(self.members.len());
        let mut jobs = Vec::with_capacity(self.members.len());
        for (at, (id, member)) in self.members.iter().enumerate() {
            let is_here = |answer: &Answer| answer.place == at;
            let answer = trained.next_if(is_here).or_else(|| serving.next_if(is_here));
            if let Some(end) = member.ending.ended() {
                decision.terminate.push(id.clone());
                jobs.push((id.clone(), said("-", None, Why::Ended(end))));
            } else if let Some(Answer { limit, waits, said, .. }) = answer {
                if waits {
                    decision.waiting.push(id.clone());
                }
                limits.push((id.clone(), Share::nearest(limit)));
                jobs.push((id.clone(), said));
            }
        }
        decision.limits = limits.into_iter().collect();
        decision.jobs = jobs.into_iter().collect();
        decision
    }

    fn next(&self, run: &Run<'_>) -> f64 {
        let first = run.served.first.and_then(|at| run.rows.get(at));
        let learns = first.is_some_and(|row| {
            let job = run.jobs.get(row.member);
            let needs = job.is_some_and(|job| {
                job.targets.acceptable.is_some() || job.targets.objective.is_some()
            });
            let points = self.members.get(row.member).map_or(0, |(_, of)| of.curve.points());
            needs && points < FEW_LOSSES
        });
        let waits = self.members.iter().any(|(_, member)| member.ending.is_being_confirmed());
        timing::next(&run.rows, &run.deadlines, &run.served, &self.settings, (learns, waits))
    }

    /// Of each job that trains.
    fn trained<'a>(&'a self, run: &'a Run<'_>) -> Box<dyn Iterator<Item = Answer> + 'a> {
        let beside_services = !run.claims.is_empty();
        if run.unstated {
            return Box::new(unstated(run, beside_services));
        }
        let given = limits(&run.served, &beyond(run), self.settings.wait, beside_services);
        let words = Words::new(self, run);
        let first = words.first.as_ref().map(|(id, _)| id);
        let outlooks = outlook::of(&run.rows, &run.deadlines, &run.served, run.capacity, first);
        let rows = run.rows.iter().zip(given).zip(&run.served.shares).zip(outlooks).enumerate();
        Box::new(rows.map(move |(at, (((row, limit), share), outlook))| {
            let (class, why) = words.of(at, *share);
            Answer {
                place: row.member,
                limit,
                waits: *share <= 0.0,
                said: JobDecision { outlook, ..said(class, row.left, why) },
            }
        }))
    }
}

/// Of each service.
fn serving(run: &Run<'_>) -> impl Iterator<Item = Answer> {
    let answer = |(place, claim): &(usize, super::Claim)| {
        let why = Why::Service {
            target: claim.target,
            latency: claim.latency,
            need: claim.need,
            share: claim.share,
            admitted: claim.admitted,
            bound: run.bound,
        };
        let score = claim.latency.map(|latency| claim.target - latency);
        Answer {
            place: *place,
            limit: claim.share,
            // Its need may be less than what keeps other jobs alive.
            waits: claim.admitted,
            said: said("service", score, why),
        }
    };
    run.claims.iter().map(answer)
}

/// What each row may have beyond its share. A higher limit takes CPU from jobs with a deadline. Jobs of unknown
/// size get none, nor do others while a job that must run needs more than an equal share.
fn beyond(run: &Run<'_>) -> Vec<Beyond> {
    let each = || run.rows.iter().zip(run.deadlines.each()).zip(&run.served.shares);
    let served = each().filter(|(_, share)| **share > 0.0);
    let party = |((row, _), _): ((&super::Row, _), _)| Party {
        weight: 1.0,
        cap: row.cap,
        left: f64::INFINITY,
    };
    let equal = level(served.map(party), run.room);
    let takes = each().any(|((_, claimant), share)| claimant.must && *share > equal);
    let beyond = |(at, ((row, claimant), share)): (usize, ((&super::Row, &Claimant), &f64))| {
        let is_first = run.served.first == Some(at);
        if !row.cap_is_known && (is_first || row.left.is_some() && !takes) {
            Beyond::All
        } else if *share < row.cap && (row.left.is_none() || takes && !claimant.must) {
            Beyond::Nothing
        } else {
            Beyond::Little
        }
    };
    each().enumerate().map(beyond).collect()
}

/// No job says anything of its work.
fn unstated(run: &Run<'_>, beside_services: bool) -> impl Iterator<Item = Answer> {
    let weights: f64 = run.rows.iter().map(|row| row.weight).sum();
    let answer = move |row: &super::Row| {
        let part = run.room * row.weight / weights;
        let limit = if beside_services { part } else { 1.0 };
        let why = match run.rows.len() {
            1 if !beside_services => Why::Alone { left: None },
            jobs => Why::Unstated { jobs },
        };
        Answer { place: row.member, limit, waits: false, said: said("shares", None, why) }
    };
    run.rows.iter().map(answer)
}

/// The answer for one job.
struct Answer {
    /// Its place among the members.
    place: usize,
    limit: f64,
    /// Whether it waits on purpose.
    waits: bool,
    said: JobDecision,
}

fn said(class: &'static str, score: Option<f64>, why: Why) -> JobDecision {
    JobDecision::new(class, score, policies::Why::Paceline(why))
}

/// What reasons go by.
struct Words<'a> {
    policy: &'a Paceline,
    run: &'a Run<'a>,
    first: Option<(JobId, Option<f64>)>,
    /// How many have an unknown size, doubted ones apart.
    unknown: [usize; 2],
}

impl<'a> Words<'a> {
    fn new(policy: &'a Paceline, run: &'a Run<'a>) -> Self {
        let first = run.served.first.and_then(|at| {
            let row = run.rows.get(at)?;
            let (id, _) = policy.members.get(row.member)?;
            Some((id.clone(), row.left))
        });
        let number = |doubted| {
            run.rows.iter().filter(|row| row.left.is_none() && row.doubted == doubted).count()
        };
        Self { policy, run, first, unknown: [number(false), number(true)] }
    }

    /// Class and reason of a row that is to have this share.
    fn of(&self, at: usize, share: f64) -> (&'static str, Why) {
        let run = self.run;
        let Some(row) = run.rows.get(at) else { return ("-", Why::Alone { left: None }) };
        let is_first = run.served.first == Some(at);
        let fair = run.deadlines.due(at);
        if run.rows.len() == 1 && run.claims.is_empty() {
            return ("runs", Why::Alone { left: row.left });
        }
        if row.is_new {
            return ("new", Why::New { used: row.used, served: is_first });
        }
        let Some(left) = row.left else {
            let [plain, doubted] = self.unknown;
            let part = if row.fair > 0.0 { row.used / row.fair } else { 1.0 };
            let jobs = if row.doubted { doubted } else { plain };
            return ("shares", Why::Shares { share, jobs, part, doubted: row.doubted });
        };
        if share <= 0.0 {
            let (first, first_left) = self.first.clone().unzip();
            return ("waits", Why::Waits { first, first_left: first_left.flatten(), fair });
        }
        if is_first {
            let less = run.rows.iter().filter(|row| row.left.is_some_and(|other| other < left));
            return (
                "runs",
                Why::First {
                    left,
                    less: less.count(),
                    jobs: run.rows.len(),
                    slack: run.deadlines.slack_of_others(at),
                    measures: run.served.measures,
                },
            );
        }
        let must = row.must_run(fair, self.policy.settings.least);
        let why = match &self.first {
            Some((first, _)) if !must => Why::Beside { first: first.clone(), left, share },
            Some(_) | None => Why::Must { left, cap: row.cap, fair },
        };
        ("runs", why)
    }
}
