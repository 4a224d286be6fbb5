//! The samples as lines of charts.

use paceline_api::samples::SampleJob;

use super::super::outcome::{Findings, samples_of};
use super::super::record::Recorded;
use super::pictures::Shown;
use crate::figure::Axis;
use crate::figure::chart::{Points, steps};
use crate::figure::scale::log_marks;

/// The lines of one run's charts; the vectors hold one line for each job, in order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Traces {
    /// In percent of the job's first loss, of the run where it is highest. So a job's lines can be compared
    /// between arms, and jobs within one chart.
    pub(super) loss: Vec<Points>,
    /// In percent of the machine, as steps.
    pub(super) limit: Vec<Points>,
    /// In percent of the machine.
    pub(super) cpu: Vec<Points>,
    /// The use of the whole machine by everything, in percent.
    pub(super) machine: Points,
}

/// The lines of each run, and the time at which the longest ended.
pub(super) fn traces(findings: &Findings, shown: &[Shown<'_>]) -> (Vec<Traces>, f64) {
    let jobs: Vec<&str> = findings.about.jobs.iter().map(|facts| facts.job.name.as_str()).collect();
    let runs: Vec<&Recorded> = shown.iter().map(|shown| shown.observed.recorded).collect();
    let starts: Vec<f64> = jobs.iter().map(|job| start_loss(job, &runs)).collect();
    let last = runs.iter().flat_map(|recorded| &recorded.run.jobs).map(|job| job.ended);
    let end = last.fold(1.0, f64::max);
    let all = runs.iter().map(|recorded| {
        let ends = recorded.run.jobs.iter().map(|job| job.ended);
        let machine = recorded.samples.iter().filter_map(|sample| {
            Some((sample.unix - recorded.run.began, percent(sample.node.cpu?)))
        });
        Traces {
            loss: jobs
                .iter()
                .zip(&starts)
                .map(|(job, start)| {
                    of(job, recorded, |its| its.loss.map(|loss| 100.0 * loss / start))
                })
                .collect(),
            limit: jobs
                .iter()
                .zip(ends)
                .map(|(job, end)| steps(&of(job, recorded, |its| its.limit.map(percent)), end))
                .collect(),
            cpu: jobs.iter().map(|job| of(job, recorded, |its| its.cpu.map(percent))).collect(),
            machine: machine.filter(|(t, _)| (0.0..=end).contains(t)).collect(),
        }
    });
    (all.collect(), end)
}

/// One axis for the losses of all runs, so that they can be compared.
pub(super) fn loss_axis(traces: &[Traces]) -> Axis {
    let title = "loss (% of the job's first)".to_owned();
    let values = || traces.iter().flat_map(|its| its.loss.iter().flatten()).map(|(_, loss)| *loss);
    let least = values().fold(100.0, f64::min);
    let most = values().fold(100.0, f64::max);
    if least > 0.0 {
        return Axis { title, marks: log_marks(least, most), above: 0.02, log: true };
    }
    // A logarithmic axis cannot show a loss of 0 or less.
    let marks = (0_u32..=4).map(|part| least + (most - least) * f64::from(part) / 4.0).collect();
    Axis { title, marks, above: 0.04 * (most - least), log: false }
}

fn percent(fraction: f64) -> f64 {
    100.0 * fraction
}

fn of(job: &str, recorded: &Recorded, value: impl Fn(&SampleJob) -> Option<f64>) -> Points {
    samples_of(job, recorded).filter_map(|(t, its)| Some((t, value(its)?))).collect()
}

/// The loss that counts as 100 % of a job's; never 0.
fn start_loss(job: &str, runs: &[&Recorded]) -> f64 {
    let first = |recorded: &&Recorded| samples_of(job, recorded).find_map(|(_, its)| its.loss);
    let highest = runs.iter().filter_map(first).map(f64::abs).fold(0.0, f64::max);
    if highest > 0.0 { highest } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis_of(losses: &[f64]) -> Axis {
        let loss = vec![losses.iter().map(|loss| (0.0, *loss)).collect()];
        let none = Vec::new;
        loss_axis(&[Traces { loss, limit: none(), cpu: none(), machine: Vec::new() }])
    }

    #[test]
    fn loss_axis_encloses_every_loss() {
        assert_eq!(axis_of(&[90.0, 22.0]).marks, [20.0, 50.0, 100.0]);
        assert_eq!(axis_of(&[]).marks, [100.0]);
        let negative = axis_of(&[-20.0, 60.0]);
        assert!(!negative.log);
        assert_eq!(negative.marks, [-20.0, 10.0, 40.0, 70.0, 100.0]);
    }
}
