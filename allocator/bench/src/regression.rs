//! Explains why an arm is worse, by one decision from the arm's audit log.

use paceline_api::audit::{Entry, Record};
use paceline_sim::claims::Verdict;
use paceline_sim::metrics::Better;

use super::outcome::{
    ArmFindings, BASELINE, Compared, JOB_MEASURES, Measure, Measured, ORACLE, Regression,
    job_figures,
};

/// Choices that differ by less count as the same.
const SAME: f64 = 1e-3;

/// The figures by which an arm may be worse than `none`, each with the corresponding figure of jobs.
const JUDGED: [(&str, &str); 6] = [
    ("completion_mean", "completion"),
    ("acceptable_mean", "acceptable"),
    ("objective_mean", "objective"),
    ("satisfied", "batch_latency"),
    ("met", "batch_latency"),
    ("distance", "batch_latency"),
];

/// Explains why the arm of these runs is worse than `none` or than its paper's claims, if it is. Disturbed
/// runs do not count.
pub(crate) fn explain(
    arm: &ArmFindings,
    runs: &[Measured<'_>],
    claims: &[Compared],
) -> Option<Regression> {
    if [BASELINE, ORACLE].contains(&arm.facts.policy.as_str()) {
        return None;
    }
    let mut judged = JUDGED.iter().filter(|(of_all, _)| arm.figure(of_all).is_some());
    // The first figure that the arm has: arms with stopped jobs have no completion times.
    let (_, usual) = *judged.clone().next()?;
    let worse = judged.find_map(|(of_all, of_job)| Some((worse(arm, of_all)?, *of_job)));
    let (symptom, figure) = worse.or_else(|| Some((worse_than_printed(arm, claims)?, usual)))?;
    let (place, lost) = most_lost(arm, figure)?;
    let job = arm.jobs.get(place)?;
    let value = |run: &&Measured<'_>| {
        job_figures(&run.trajectory, place).get(figure).copied().flatten().unwrap_or(0.0)
    };
    let counted = runs.iter().filter(|run| run.observed.counts());
    let run = counted.max_by(|a, b| value(a).total_cmp(&value(b)))?;
    let recorded = &run.observed.recorded.run;
    let its = recorded.jobs.get(place)?;
    let title =
        JOB_MEASURES.iter().find(|known| known.name == figure).map_or("", |known| known.title);
    let most = if lost > 0.0 {
        "The job that lost most is"
    } else {
        "No job lost compared with none; the one that gained least is"
    };
    let mut sentences = vec![format!(
        "{most} {}: {title} is {} s compared with none on average, and {} s in repeat {}.",
        job.job,
        signed(lost),
        rounded(value(&run)),
        recorded.repeat,
    )];
    let (log, began) = (&run.observed.log, recorded.began);
    let cut = costliest(log, &job.job, began + its.ended);
    let decision = cut.map(|cut| cut.sentences(log, &job.job, began));
    let decision = decision.or_else(|| longest_move(log, &job.job, began));
    sentences.extend(decision.unwrap_or_else(|| {
        vec![
            "No decision limited it to less than the whole machine: it lost to the other jobs' use of \
             the machine."
                .to_owned(),
        ]
    }));
    Some(Regression { symptom, sentences })
}

/// A sentence on how much an arm is worse than `none` by this measure, if it is.
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
    let half = difference.half.map(rounded);
    let sure = match half {
        Some(half) if figure.certain() => format!(" ± {half}"),
        Some(half) => format!(" ± {half}, which may be chance"),
        None => ", from one repeat".to_owned(),
    };
    let (mean, unit) = (rounded(figure.measured.mean), measure.unit);
    Some(format!(
        "{}: {} is {mean} {unit}, {} {unit} compared with none{sure}.",
        arm.facts.name,
        measure.title,
        signed(difference.mean)
    ))
}

/// With more digits for small values: a batch may take some hundredths of a second.
fn rounded(value: f64) -> String {
    let digits = if value.abs() < 1.0 { 3 } else { 1 };
    format!("{value:.digits$}")
}

fn signed(value: f64) -> String {
    format!("{}{}", if value < 0.0 { "" } else { "+" }, rounded(value))
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

/// The job whose figure exceeds that under `none` most.
fn most_lost(arm: &ArmFindings, figure: &str) -> Option<(usize, f64)> {
    let jobs = arm.jobs.iter().enumerate();
    let lost = jobs.filter_map(|(place, job)| {
        let figure = job.figure(figure).filter(|figure| !figure.difference_disturbed)?;
        Some((place, figure.difference?.mean))
    });
    lost.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// A decision about a job, and how long it was in force.
#[derive(Debug)]
struct Cut<'a> {
    decided: &'a Record,
    chosen: f64,
    until: f64,
}

/// The decision that kept most CPU time from the job.
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
    /// The decision, the write that followed, and how long it was in force.
    fn sentences(&self, log: &[Record], job: &str, began: f64) -> Vec<String> {
        let mut sentences = vec![
            format!(
                "The decision that kept most CPU time from it, {:.1} s after the run began:",
                self.decided.at - began
            ),
            format!("{}.", self.decided.entry),
        ];
        let written = log.iter().find(|record| {
            let own = matches!(&record.entry, Entry::Limited { job: own, .. } if own == job);
            own && (self.decided.at..self.until).contains(&record.at)
        });
        sentences.extend(written.map(|record| format!("{}.", record.entry)));
        let seconds = self.until - self.decided.at;
        sentences.push(format!("That decision was in force for {seconds:.1} s."));
        sentences
    }
}

/// The move that stopped the job for longest, and the decision that caused it. Later decisions, by which the
/// job stays, may lie between them.
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
        "No decision limited it to less than the whole machine, but a move stopped it {:.1} s after the \
         run began:",
        stopped_at - began
    )];
    let decided = log.iter().rfind(moves_it);
    sentences.extend(decided.map(|record| format!("{}.", record.entry)));
    sentences.push(format!("{}.", moved.entry));
    Some(sentences)
}

#[cfg(test)]
mod tests;
