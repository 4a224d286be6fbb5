//! Why an arm is worse: one decision, told in sentences from the arm's own log.

use paceline_sim::claims::Verdict;
use paceline_sim::metrics::Better;
use serde::{Deserialize, Serialize};

use super::claims::Compared;
use super::outcome::{ArmFindings, BASELINE, Measure, Measured, OF_JOBS, ORACLE, job_figures};
use crate::audit::{Entry, Record};

/// Choices that differ by less are one.
const SAME: f64 = 1e-3;

/// A decision that cost a job much.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Story {
    /// What is worse.
    pub(crate) occasion: String,
    /// What was decided, why, and what came of it.
    pub(crate) sentences: Vec<String>,
}

/// What an arm may be worse by than `none`, with the figure of the jobs that it comes from.
const JUDGED: [(&str, &str); 6] = [
    ("completion_mean", "completion"),
    ("acceptable_mean", "acceptable"),
    ("objective_mean", "objective"),
    ("satisfied", "batch_latency"),
    ("met", "batch_latency"),
    ("distance", "batch_latency"),
];

/// Tells why the arm of these runs is worse than `none` or than its paper says, if it is. Disturbed
/// runs say nothing of that.
pub(crate) fn tell(arm: &ArmFindings, runs: &[Measured<'_>], claims: &[Compared]) -> Option<Story> {
    if [BASELINE, ORACLE].contains(&arm.facts.policy.as_str()) {
        return None;
    }
    let mut judged = JUDGED.iter().filter(|(of_all, _)| arm.figure(of_all).is_some());
    // Where jobs are stopped before their end, this is no completion.
    let (_, usual) = *judged.clone().next()?;
    let worse = judged.find_map(|(of_all, of_job)| Some((worse(arm, of_all)?, *of_job)));
    let (occasion, figure) = worse.or_else(|| Some((worse_than_printed(arm, claims)?, usual)))?;
    let (place, lost) = most_lost(arm, figure)?;
    let job = arm.jobs.get(place)?;
    let value = |run: &&Measured<'_>| {
        job_figures(&run.course, place).get(figure).copied().flatten().unwrap_or(0.0)
    };
    let counted = runs.iter().filter(|run| run.observed.counts());
    let run = counted.max_by(|a, b| value(a).total_cmp(&value(b)))?;
    let recorded = &run.observed.recorded.run;
    let its = recorded.jobs.get(place)?;
    let title = OF_JOBS.iter().find(|known| known.name == figure).map_or("", |known| known.title);
    let most = if lost > 0.0 {
        "The job that lost most is"
    } else {
        "No job lost against none; the one that gained least is"
    };
    let mut sentences = vec![format!(
        "{most} {}: {title} is {} s against none on average, and {} s in repeat {}.",
        job.job,
        signed(lost),
        said(value(&run)),
        recorded.repeat,
    )];
    let (log, began) = (&run.observed.log, recorded.began);
    let cut = costliest(log, &job.job, began + its.ended);
    let told = cut.map(|cut| cut.sentences(log, &job.job, began));
    let told = told.or_else(|| longest_move(log, &job.job, began));
    sentences.extend(told.unwrap_or_else(|| {
        vec![
            "No decision gave it less than the whole machine: what it lost, it lost to the others' \
             use of the machine."
                .to_owned(),
        ]
    }));
    Some(Story { occasion, sentences })
}

/// By what an arm is worse than `none`, if it is by this measure.
fn worse(arm: &ArmFindings, name: &str) -> Option<String> {
    let measure = Measure::named(name)?;
    let figure = arm.figure(name)?;
    let is_worse = |difference: f64| match measure.better {
        Some(Better::Less) => difference > 0.0,
        Some(Better::More) => difference < 0.0,
        None => false,
    };
    let known = figure.difference.filter(|_| !figure.difference_disturbed);
    let difference = known.filter(|difference| is_worse(difference.mean))?;
    let half = difference.half.map(said);
    let sure = match half {
        Some(half) if figure.certain() => format!(" ± {half}"),
        Some(half) => format!(" ± {half}, which may be chance"),
        None => ", of one repeat".to_owned(),
    };
    let (mean, unit) = (said(figure.measured.mean), measure.unit);
    Some(format!(
        "{}: {} is {mean} {unit}, {} {unit} against none{sure}.",
        arm.facts.name,
        measure.title,
        signed(difference.mean)
    ))
}

/// By the digits that count: a batch may take some hundredths of a second.
fn said(value: f64) -> String {
    let digits = if value.abs() < 1.0 { 3 } else { 1 };
    format!("{value:.digits$}")
}

fn signed(value: f64) -> String {
    format!("{}{}", if value < 0.0 { "" } else { "+" }, said(value))
}

fn worse_than_printed(arm: &ArmFindings, claims: &[Compared]) -> Option<String> {
    let own = claims.iter().filter(|claim| claim.arm.as_ref() == Some(&arm.facts.name));
    let mut worse = own.filter_map(|compared| {
        let measured = compared.measured?.mean;
        let worse = match compared.claim.better() {
            Better::Less => measured > compared.claim.value,
            Better::More => measured < compared.claim.value,
        };
        (worse && compared.verdict == Verdict::Different).then_some((compared, measured))
    });
    let (compared, measured) = worse.next()?;
    let claim = &compared.claim;
    let shown = |value| claim.shown(value);
    Some(format!(
        "{}: not as printed ({}): {} in {}, {} here.",
        arm.facts.name,
        claim.figure.title(),
        shown(claim.value),
        claim.source,
        shown(measured),
    ))
}

/// The job whose figure is most above that under `none`.
fn most_lost(arm: &ArmFindings, figure: &str) -> Option<(usize, f64)> {
    let jobs = arm.jobs.iter().enumerate();
    let lost = jobs.filter_map(|(place, job)| {
        let figure = job.figure(figure).filter(|figure| !figure.difference_disturbed)?;
        Some((place, figure.difference?.mean))
    });
    lost.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// A decision about a job, and how long its choice stood.
#[derive(Debug)]
struct Cut<'a> {
    decided: &'a Record,
    chosen: f64,
    until: f64,
}

/// The choice that kept most of the machine from the job, for as long as it stood.
fn costliest<'a>(log: &'a [Record], job: &str, ended: f64) -> Option<Cut<'a>> {
    let mut all: Vec<Cut<'a>> = Vec::new();
    for record in log {
        let Entry::Decided { job: own, chosen, .. } = &record.entry else { continue };
        if own != job {
            continue;
        }
        if let Some(last) = all.last_mut() {
            if (last.chosen - chosen).abs() < SAME {
                continue;
            }
            last.until = record.at;
        }
        all.push(Cut { decided: record, chosen: *chosen, until: ended });
    }
    let cost = |cut: &Cut<'_>| (1.0 - cut.chosen) * (cut.until - cut.decided.at);
    all.into_iter().filter(|cut| cost(cut) > 0.0).max_by(|a, b| cost(a).total_cmp(&cost(b)))
}

impl Cut<'_> {
    /// The decision, the write that came of it, and how long it stood.
    fn sentences(&self, log: &[Record], job: &str, began: f64) -> Vec<String> {
        let mut sentences = vec![
            format!(
                "The choice that kept most of the machine from it, {:.1} s after the run began:",
                self.decided.at - began
            ),
            format!("{}.", self.decided.entry),
        ];
        let written = log.iter().find(|record| {
            let own = matches!(&record.entry, Entry::Limited { job: own, .. } if own == job);
            own && (self.decided.at..self.until).contains(&record.at)
        });
        sentences.extend(written.map(|record| format!("{}.", record.entry)));
        sentences.push(format!("That choice stood for {:.1} s.", self.until - self.decided.at));
        sentences
    }
}

/// The move that stopped the job for longest, and the decision that it followed from: others may have been
/// made between them, by which the job stays where it is.
fn longest_move(log: &[Record], job: &str, began: f64) -> Option<Vec<String>> {
    let stopped = |record: &Record| {
        let Entry::Moved { job: own, seconds, .. } = &record.entry else { return None };
        (own == job).then(|| seconds.unwrap_or(0.0))
    };
    let moves = log.iter().filter_map(|record| Some((record, stopped(record)?)));
    let (moved, seconds) = moves.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let Entry::Moved { to, .. } = &moved.entry else { return None };
    let stopped_at = moved.at - seconds;
    let moves_it = |record: &&Record| {
        let Entry::Decided { job: own, moves_to, .. } = &record.entry else { return false };
        own == job && moves_to.as_ref() == Some(to) && record.at <= stopped_at
    };
    let mut sentences = vec![format!(
        "No decision gave it less than the whole machine, but it was moved, and stopped for that {:.1} s \
         after the run began:",
        stopped_at - began
    )];
    let decided = log.iter().rfind(moves_it);
    sentences.extend(decided.map(|record| format!("{}.", record.entry)));
    sentences.push(format!("{}.", moved.entry));
    Some(sentences)
}

#[cfg(test)]
mod tests;
