//! Turns a run into a decision, with a reason for each job.

use super::claimant::Claimant;
use super::limits::{Beyond, limits};
use super::outlook::outlook;
use super::sharing::{Participant, level};
use super::{Paceline, Run, Why, timing};
use crate::decision::{Decision, JobDecision};
use crate::per_job::PerJob;
use crate::reason;
use crate::unit::{JobId, Share};

/// With fewer losses than this, a job's forecast is refreshed soon.
const FEW_LOSSES: usize = 8;

impl Paceline {
    pub(super) fn answer(&self, run: &Run<'_>) -> Decision {
        let (limits, jobs) = (PerJob::new(), PerJob::new());
        let mut decision = Decision::new(run.frame.t, Self::NAME, self.next(run), limits, jobs);
        let trained = Trained::new(self, run);
        // Both are in the order of the members.
        let mut rows = run.rows.iter().enumerate().peekable();
        let mut claims = run.claims.iter().peekable();
        let waiting = run.served.shares.iter().filter(|share| **share <= 0.0).count();
        decision.waiting.reserve(if run.unstated { 0 } else { waiting });
        let mut limits = Vec::with_capacity(self.members.len());
        let mut jobs = Vec::with_capacity(self.members.len());
        for (at, (id, member)) in self.members.iter().enumerate() {
            let answer = if let Some((place, row)) = rows.next_if(|(_, row)| row.member == at) {
                trained.answer(place, row)
            } else if let Some((_, claim)) = claims.next_if(|(place, _)| *place == at) {
                serving(claim, run.bound)
            } else {
                if let Some(end) = member.ending.ended() {
                    decision.terminate.push(id.clone());
                    jobs.push((id.clone(), job_decision("-", None, Why::Ended(end))));
                }
                continue;
            };
            if answer.waits {
                decision.waiting.push(id.clone());
            }
            limits.push((id.clone(), Share::nearest(answer.limit)));
            jobs.push((id.clone(), answer.decision));
        }
        decision.limits = PerJob::from_sorted(limits);
        decision.jobs = PerJob::from_sorted(jobs);
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
        let news = (learns, run.confirms);
        timing::next(&run.rows, &run.deadlines, &run.served, &self.settings, news)
    }
}

/// What the answers for training jobs are based on.
enum Trained<'a> {
    /// No job reports its work: the number of jobs, the room by weight, and whether there are services.
    Unstated { jobs: usize, room: f64, weights: f64, beside_services: bool },
    /// The limit of each row, and the figures for the reasons.
    Stated(Vec<f64>, Reasons<'a>),
}

impl<'a> Trained<'a> {
    fn new(policy: &'a Paceline, run: &'a Run<'_>) -> Self {
        let beside_services = !run.claims.is_empty();
        if run.unstated {
            let weights = run.rows.iter().map(|row| row.weight).sum();
            let (jobs, room) = (run.rows.len(), run.room);
            return Self::Unstated { jobs, room, weights, beside_services };
        }
        let given = limits(&run.served, &beyond(run), policy.settings.wait, beside_services);
        Self::Stated(given, Reasons::new(policy, run))
    }

    /// The answer for the row at the place `at`.
    fn answer(&self, at: usize, row: &super::Row) -> Answer {
        match self {
            Self::Unstated { jobs, room, weights, beside_services } => {
                let limit = if *beside_services { room * row.weight / weights } else { 1.0 };
                let why = match jobs {
                    1 if !beside_services => Why::Alone { left: None },
                    jobs => Why::Unstated { jobs: *jobs },
                };
                Answer { limit, waits: false, decision: job_decision("shares", None, why) }
            }
            Self::Stated(limits, reasons) => {
                let share = reasons.run.served.shares.get(at).copied().unwrap_or(0.0);
                let waits = share <= 0.0;
                let first = reasons.first.as_ref().filter(|_| waits);
                let waits_for = first.map(|(id, _)| id.clone());
                let ends_in = reasons.run.ends.get(at).copied().flatten();
                let outlook = outlook(row, reasons.run.deadlines.due(at), ends_in, waits_for);
                let (class, why) = reasons.class_and_reason(at, row, share);
                let decision = JobDecision { outlook, ..job_decision(class, row.left, why) };
                Answer { limit: limits.get(at).copied().unwrap_or(1.0), waits, decision }
            }
        }
    }
}

/// The answer for a service.
fn serving(claim: &super::Claim, bound: bool) -> Answer {
    let why = Why::Service {
        target: claim.target,
        latency: claim.latency,
        need: claim.need,
        share: claim.share,
        admitted: claim.admitted,
        bound,
    };
    let score = claim.latency.map(|latency| claim.target - latency);
    Answer {
        limit: claim.share,
        // Its need may be below the limiter's default minimum.
        waits: claim.admitted,
        decision: job_decision("service", score, why),
    }
}

/// What each row may have beyond its share. A higher limit takes CPU from jobs with a deadline. So jobs of
/// unknown size get nothing more, nor do others while a job that must run needs more than an equal share.
fn beyond(run: &Run<'_>) -> Vec<Beyond> {
    let each = || run.rows.iter().zip(run.deadlines.each()).zip(&run.served.shares);
    let served = each().filter(|(_, share)| **share > 0.0);
    let participant = |((row, _), _): ((&super::Row, _), _)| Participant {
        weight: 1.0,
        cap: row.cap,
        left: f64::INFINITY,
    };
    let equal = level(served.map(participant), run.room);
    let takes = each().any(|((_, claimant), share)| claimant.must && *share > equal);
    // The kernel shares equally without limits. So a job of large weight would not get its part then.
    let outweighs = |(at, ((row, _), share)): (usize, ((&super::Row, _), &f64))| {
        run.served.first != Some(at) && row.left.is_none() && *share > equal
    };
    let outweighed = each().enumerate().any(outweighs);
    let beyond = |(at, ((row, claimant), share)): (usize, ((&super::Row, &Claimant), &f64))| {
        let is_first = run.served.first == Some(at);
        if !row.cap_is_known && (is_first && !outweighed || row.left.is_some() && !takes) {
            Beyond::All
        } else if *share < row.cap && (row.left.is_none() || takes && !claimant.must) {
            Beyond::Nothing
        } else {
            Beyond::Little
        }
    };
    each().enumerate().map(beyond).collect()
}

/// The answer for one job.
struct Answer {
    limit: f64,
    /// Whether it waits on purpose.
    waits: bool,
    decision: JobDecision,
}

fn job_decision(class: &'static str, score: Option<f64>, why: Why) -> JobDecision {
    JobDecision::new(class, score, reason::Why::Paceline(why))
}

/// The figures for the reasons.
struct Reasons<'a> {
    policy: &'a Paceline,
    run: &'a Run<'a>,
    first: Option<(JobId, Option<f64>)>,
    /// The numbers of jobs of unknown size: those that state nothing, and doubted ones.
    unknown: [usize; 2],
}

impl<'a> Reasons<'a> {
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

    /// Class and reason of a row with this share.
    fn class_and_reason(&self, at: usize, row: &super::Row, share: f64) -> (&'static str, Why) {
        let run = self.run;
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
