//! The fit as text for people.

use std::fmt::Write;

use paceline_api::figures::{latency, number};
use paceline_api::plain::plain;
use paceline_sim::curve::Curve;
use paceline_sim::fit::{Batch, Fit, Fitted, JobFit, Learning, Measured, NodeFit, Throttling};
use paceline_sim::scenario::EarlyReports;

pub(super) fn report(fit: &Fit) -> String {
    let mut lines = Vec::new();
    for (place, node) in fit.nodes.iter().enumerate() {
        let jobs = || fit.jobs.iter().filter(|job| job.node == node.name);
        lines.extend((place > 0).then(String::new));
        lines.extend(node_lines(node, jobs().count(), jobs().filter(|job| job.ended).count()));
        for job in jobs() {
            lines.push(String::new());
            lines.extend(job_lines(job));
        }
    }
    if !fit.left_out.is_empty() {
        let names: Vec<String> = fit.left_out.iter().map(|id| plain(id.as_str())).collect();
        lines.push(format!("\nleft out because no frame shows work of them: {}", names.join(", ")));
    }
    let mut text = String::new();
    for line in lines {
        writeln!(text, "{line}").expect("a string takes whatever is written to it");
    }
    text
}

fn node_lines(node: &NodeFit, jobs: usize, ended: usize) -> [String; 3] {
    let name = plain(&node.name);
    [
        format!("{name}: {} CPUs; {jobs} jobs, {ended} of them ended", node.cpus),
        line("others", &node.background, |share| format!("{} of the node", percent(*share))),
        line("contention", &node.contention, |contention| {
            format!("a neighbour of equal share makes work {} longer", percent(*contention))
        }),
    ]
}

fn job_lines(job: &JobFit) -> Vec<String> {
    let JobFit { arrived, work, cpu, .. } = job;
    let end = if job.ended { "" } else { "; did not end: this is its work so far" };
    let costs = |batch: &Batch| batch.throttling.as_ref().map(throttling).map_err(|why| *why);
    let mut lines = vec![
        plain(job.id.as_str()),
        format!("  arrives     at {arrived:.1} s"),
        format!("  work        {work:.2} s of the node, {cpu:.2} s of CPU time{end}"),
        line("most", &job.parallel, most),
        line("crowded", &job.crowded, |part| {
            format!("when many jobs compete, its weight counts {}", percent(*part))
        }),
        line("batch", &job.batch, batch),
        line("limit", &job.batch.and_then(|batch| costs(&batch)), Clone::clone),
        line("loss", &job.learning, learning),
    ];
    lines.extend(job.contention.map(|contention| {
        format!(
            "  contention  a neighbour of equal share makes its work {} longer",
            percent(contention)
        )
    }));
    lines.extend(job.early_reports.map(|EarlyReports { loss, largest }| {
        let [loss, largest] = [loss, largest].map(|loss| number(Some(loss)));
        format!("  reported    {loss} before its first frame, {largest} at most")
    }));
    lines
}

/// One fitted parameter, or why it could not be fitted.
fn line<T>(name: &str, fitted: &Fitted<T>, words: impl Fn(&T) -> String) -> String {
    match fitted {
        Ok(value) => format!("  {name:<10}  {}", words(value)),
        Err(why) => format!("  {name:<10}  not fitted: {why}"),
    }
}

fn most(most: &Measured) -> String {
    if most.mean < 1.0 {
        format!("uses {} of the node at most, ± {}", percent(most.mean), percent(most.deviation))
    } else {
        "can use the whole node".to_owned()
    }
}

fn batch(batch: &Batch) -> String {
    let fixed = match batch.fixed {
        Ok(fixed) if fixed > 0.0 => format!(" plus {} fixed", latency(Some(fixed))),
        Ok(_) => ", no fixed part".to_owned(),
        Err(_) => String::new(),
    };
    let work = latency(Some(batch.work));
    let [error, noise] = [batch.error, batch.noise].map(percent);
    format!("{work} of the node{fixed}; error of the mean durations {error}, noise {noise}")
}

fn throttling(throttling: &Throttling) -> String {
    let Throttling { cost, threads } = throttling;
    format!("costs up to {} of its speed; threads: {threads}", percent(*cost))
}

fn learning(learning: &Learning) -> String {
    let (first, last) = (learning.curve.at(0.0), learning.curve.at(1.0));
    let [first, last] = [first, last].map(|loss| number(Some(loss)));
    let shape = match &learning.curve {
        Curve::Exponential { tau, .. } => format!("exponential, tau {}", number(Some(*tau))),
        Curve::Power { scale, exponent, .. } => {
            format!("power law, scale {}, exponent {exponent:.2}", number(Some(*scale)))
        }
        Curve::Recorded { .. } => "recorded".to_owned(),
    };
    let [error, noise] = [learning.error, learning.noise].map(percent);
    let alike = match learning.residuals.as_slice() {
        [] => String::new(),
        parts => format!(", after correcting for residuals in {} parts", parts.len()),
    };
    format!(
        "{first} to {last}: {shape}\n{:14}error {error} of its fall, noise of reports {noise}{alike}",
        ""
    )
}

fn percent(part: f64) -> String {
    format!("{:.1} %", 100.0 * part)
}

#[cfg(test)]
mod tests {
    use paceline_sim::fit::Why;

    use super::*;

    #[test]
    fn every_reason_fits_on_one_line() {
        for why in [
            Why::TooFewFrames { of: "its batches", have: 2, need: 3 },
            Why::NoRoom { most: 0.5 },
            Why::NoLimit,
            Why::Alike,
            Why::NotByShare,
            Why::NoNeighbours,
            Why::NoLoss,
            Why::NotLearning,
            Why::NoNodeUse,
        ] {
            let line = line("contention", &Err::<(), _>(why), |()| String::new());
            assert!(line.chars().count() <= 100, "{line}");
            assert!(line.starts_with("  contention  not fitted: "), "{line}");
        }
    }
}
