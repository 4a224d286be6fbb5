//! `SpeCon`: a job that has converged makes room for those that still progress.
//!
//! Source: Mao, Fu, Zheng, Cheng, Liu, Tao: "Speculative Container Scheduling for Deep Learning
//! Applications in a Kubernetes Cluster", IEEE Systems Journal 2022, Algorithms 1 to 3.
//! The *gain* of a job is |E(t) − E(t−1)|, the progress of its loss from one frame to the next. By
//! it a job is progressing (PC), watched (WC) or converged (CC). A CC job that goes on slowing down
//! asks to move, and goes to the node with the lowest score 2·|PC| + 1.5·|WC| + |CC|. When no job
//! moves for that reason, CC jobs are moved to even out the numbers of jobs per node.
//!
//! Where the print is silent or cannot run, the code follows, in both variants: α is a fraction of
//! the largest loss seen, per interval (S1, X4); category, gain and flags belong to the job and
//! travel with it (S2), and moved jobs stay watched (S3); a single gain does not count (S4); α itself
//! counts as growth (S6); one category a frame (S7 to S9); a request comes from a job that is in CC
//! already (S10); requests are answered one by one, each by the counts that the one before left
//! (P3 to P5, P7, P10); rebalancing is the text's (R1 to R14). The variants differ in F6, X6, S11,
//! P1, P2 and P6.

mod monitor;
mod placement;
mod rebalance;

use std::collections::BTreeMap;
use std::mem;

use crate::decision::{Cause, Decision, JobDecision, Migration};
use crate::frame::{Frame, Job};
use crate::params::{ParamError, Parameter, Params, Reader};
use crate::policy::Policy;
use crate::reason;
use crate::reason::specon::{MoveDecision, Trend, Why};
use crate::unit::JobId;
use crate::variant::Variant;
use monitor::{Member, Rule};
use placement::{Cluster, Weights};

/// The parameters.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::new("alpha", 0.01, "per interval", "progress of the loss below this counts as none"),
    Parameter::new("interval", 30.0, "s", "time until the next run"),
    Parameter::new("w_cc", 1.0, "-", "weight of a converged job"),
    Parameter::new("w_wc", 1.5, "-", "weight of a watched job; at least w_cc"),
    Parameter::new("w_pc", 2.0, "-", "weight of a progressing job; at least w_wc"),
];

/// The policy and its state.
#[derive(Debug)]
pub struct SpeCon {
    rule: Rule,
    weights: Weights,
    interval: f64,
    jobs: BTreeMap<JobId, Member>,
}

/// One job in one frame.
struct Entry<'a> {
    job: &'a Job,
    member: Member,
    trend: Trend,
    outcome: Option<MoveDecision>,
}

impl<'a> Entry<'a> {
    /// The node of the job in the frame.
    fn node(&self) -> Option<&'a str> {
        self.job.node.as_deref()
    }

    fn migration(&self, from: &str, to: &str, reason: Cause) -> Migration {
        Migration { job: self.job.id.clone(), from: from.to_owned(), to: to.to_owned(), reason }
    }
}

impl SpeCon {
    /// Its name.
    pub const NAME: &'static str = "specon";

    /// Checks the parameters: `alpha` (0.01 of the largest loss, per interval), `interval` (30 s),
    /// and the weights `w_cc` (1), `w_wc` (1.5, at least `w_cc`) and `w_pc` (2, at least `w_wc`).
    pub fn new(variant: Variant, params: &Params) -> Result<Self, ParamError> {
        let params = Reader::new(Self::NAME, PARAMETERS, params)?;
        let alpha = params.at_least("alpha", 0.0)?;
        let interval = params.positive("interval")?;
        let converged = params.positive("w_cc")?;
        let watching = params.at_least("w_wc", converged)?;
        let progressing = params.at_least("w_pc", watching)?;
        Ok(Self {
            rule: Rule { variant, alpha, least_gap: interval / 2.0 },
            weights: Weights { progressing, watching, converged },
            interval,
            jobs: BTreeMap::new(),
        })
    }

    /// The jobs of a frame in the order of their ids, each with its measurement. Jobs that the frame
    /// does not list are forgotten.
    fn observe<'a>(&mut self, frame: &'a Frame) -> Vec<Entry<'a>> {
        let mut before = mem::take(&mut self.jobs).into_iter().peekable();
        let mut jobs: Vec<&Job> = frame.jobs.iter().collect();
        jobs.sort_by_key(|job| &job.id);
        let observed = |job: &'a Job| {
            while before.next_if(|(id, _)| *id < job.id).is_some() {}
            let known = before.next_if(|(id, _)| *id == job.id);
            let mut member = known.map_or_else(Member::new, |(_, member)| member);
            let trend = member.observe(frame.t, job, self.rule);
            Entry { job, member, trend, outcome: None }
        };
        jobs.into_iter().map(observed).collect()
    }
}

impl Policy for SpeCon {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn params(&self) -> BTreeMap<&'static str, f64> {
        let Weights { progressing, watching, converged } = self.weights;
        BTreeMap::from([
            ("alpha", self.rule.alpha),
            ("interval", self.interval),
            ("w_pc", progressing),
            ("w_wc", watching),
            ("w_cc", converged),
        ])
    }

    fn decide(&mut self, frame: &Frame) -> Decision {
        let mut entries = self.observe(frame);
        let mut cluster = Cluster::new(frame, &entries, self.weights);
        let mut migrate = self.place(frame.t, &mut cluster, &mut entries);
        if migrate.is_empty() {
            migrate = rebalance::rebalance(&cluster, &mut entries);
        }
        let limit = |entry: &Entry<'_>| (entry.job.id.clone(), entry.member.share);
        let limits = entries.iter().map(limit).collect();
        let (mut jobs, mut members) = (Vec::new(), Vec::new());
        for Entry { job, member, trend, outcome } in entries {
            let (class, score) = (member.class, member.gain);
            let why = reason::Why::SpeCon(Box::new(Why { class, trend, outcome }));
            jobs.push((job.id.clone(), JobDecision::new(class.label(), score, why)));
            members.push((job.id.clone(), member));
        }
        self.jobs = members.into_iter().collect();
        let jobs = jobs.into_iter().collect();
        Decision { migrate, ..Decision::new(frame.t, Self::NAME, self.interval, limits, jobs) }
    }
}

#[cfg(test)]
mod tests;
