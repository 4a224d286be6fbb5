//! What was fitted, for people.

use std::fmt::Write;

use paceline_sim::curve::Curve;
use paceline_sim::fit::{Batch, Fit, Fitted, JobFit, Learning, Measured, NodeFit, Throttling};
use paceline_sim::scenario::Told;

use crate::cli::figures::{latency, number};
use crate::cli::plain::plain;

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
        lines.push(format!(
            "\nleft out, since no work of theirs is in the frames: {}",
            names.join(", ")
        ));
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
    let end = if job.ended { "" } else { "; did not end: this is its work until then" };
    let costs = |batch: &Batch| batch.throttling.as_ref().map(throttling).map_err(|why| *why);
    let mut lines = vec![
        plain(job.id.as_str()),
        format!("  arrives     at {arrived:.1} s"),
        format!("  work        {work:.2} s of the node, {cpu:.2} s of CPU time{end}"),
        line("most", &job.parallel, most),
        line("a crowd", &job.crowded, |part| {
            format!("where many compete, its weight counts by {}", percent(*part))
        }),
        line("batch", &job.batch, batch),
        line("a limit", &job.batch.and_then(|batch| costs(&batch)), Clone::clone),
        line("loss", &job.learning, learning),
    ];
    lines.extend(job.contention.map(|contention| {
        format!(
            "  contention  a neighbour of equal share makes its work {} longer",
            percent(contention)
        )
    }));
    lines.extend(job.told.map(|Told { loss, largest }| {
        let [loss, largest] = [loss, largest].map(|loss| number(Some(loss)));
        format!("  told        {loss} before its first frame, {largest} at most")
    }));
    lines
}

/// A parameter, or why there is none.
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
        Ok(fixed) if fixed > 0.0 => format!(" and {} on top", latency(Some(fixed))),
        Ok(_) => ", nothing on top".to_owned(),
        Err(_) => String::new(),
    };
    let work = latency(Some(batch.work));
    let [error, noise] = [batch.error, batch.noise].map(percent);
    format!("{work} of the node{fixed}; durations are off by {error}, each by {noise}")
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
        parts => format!(", but for what each run has alike in {} parts", parts.len()),
    };
    format!(
        "{first} to {last}: {shape}\n{:14}off by {error} of its fall, reports by {noise}{alike}",
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
    fn every_reason_fits_into_its_line() {
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
