//! Jobs fitted to the solo runs and those of `none`, and their simulated runs under other policies.

use std::collections::BTreeMap;

use paceline_policy::JobId;
use paceline_sim::bounds::{Bound, Bounds};
use paceline_sim::fit::{Fit, NodeFit, Recording, fit};

use super::super::calibrate::SoloRun;
use super::super::outcome::{ArmFindings, JobFacts, Observed, ReferenceTimes, Trajectory, mean};
use super::super::record::Recorded;
use super::background_load::BackgroundLoad;
use super::repeat::Repeat;
use super::speed::Speed;
use super::startup::startups;

/// Predictions are means over at least this many simulated runs of an arm, since the noise of the jobs'
/// reports is random.
pub(crate) const SIMULATIONS: u64 = 120;

/// An arm's simulated runs, by repeat and seed.
pub(crate) type Trajectories = BTreeMap<(u32, u64), Trajectory>;

/// The state of the machine in a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Conditions {
    /// Its speed over time: seconds after the run began, and the relative speed from then on.
    pub(super) speeds: Vec<(f64, f64)>,
    /// The background load of its nodes, by name.
    pub(super) background: BTreeMap<String, f64>,
}

/// A model of this machine and its jobs, fitted to measured runs.
#[derive(Debug)]
pub(crate) struct Predictor {
    /// The scenario of the fitted repeat, as TOML.
    pub(crate) text: String,
    pub(super) from: String,
    pub(super) fit: Fit,
    /// The machine's speed in the fitted runs.
    pub(super) speed: Speed,
    /// The state of the machine in each run, by arm and repeat.
    conditions: BTreeMap<(String, u32), Conditions>,
    repeats: BTreeMap<u32, Repeat>,
    /// The smallest number of simulated runs of an arm.
    simulations: u64,
}

impl Predictor {
    /// Fits the median run of `none`. The other runs of `none` and the recordings of the jobs alone are more
    /// data about the same jobs. The machine may have had another speed during the calibration. So its
    /// batch durations are converted to the speed of the runs; otherwise the difference would look like
    /// contention. The `observed` runs give the arrivals of each repeat. An error says what cannot be
    /// fitted.
    pub(crate) fn fit(
        jobs: &[JobFacts],
        reference: &ReferenceTimes,
        observed: &[Observed<'_>],
        none: &[&Observed<'_>],
        calibration: &[SoloRun],
    ) -> Result<Self, String> {
        let usable: Vec<&Observed<'_>> = none.iter().copied().filter(|run| run.counts()).collect();
        let first = *median_run(&usable).ok_or(if none.is_empty() {
            "no run of `none` exists"
        } else {
            "every run of `none` was disturbed"
        })?;
        let recording = first.frames.as_ref().map_err(Clone::clone)?;
        let rest = usable.iter().filter(|run| !std::ptr::eq(**run, first));
        let speed = Speed::from_runs(&usable);
        // Batch durations scale with the inverse of the machine's speed.
        let factor = |solo: &SoloRun, id: &JobId| {
            solo.speeds.get(id.as_str()).and_then(|then| speed.alone(*then))
        };
        let calibration: Vec<Recording> = calibration
            .iter()
            .map(|solo| solo.recording.with_durations(|id| factor(solo, id)))
            .collect();
        let mut more: Vec<Recording> =
            rest.filter_map(|run| run.frames.as_ref().ok()).chain(&calibration).cloned().collect();
        more.extend(alike(jobs, &calibration));
        let mut fit = fit(recording, &more).map_err(|error| error.to_string())?;
        let run = &first.recorded.run;
        let stopped = run.jobs.iter().filter(|its| reference.is_stopped(its));
        for its in stopped {
            // The work of a stopped job is unknown: what it did until then is only a part.
            let own = fit.jobs.iter_mut().filter(|own| own.id.as_str() == its.job);
            own.for_each(|own| own.work = f64::INFINITY);
        }
        let background = BackgroundLoad::from_runs(&usable, &fit);
        let usual = background.on_nodes(None);
        for node in &mut fit.nodes {
            node.background = usual.get(&node.name).copied().map_or(node.background, Ok);
        }
        let startups = startups(jobs, &usable, &fit)?;
        let mut repeats = BTreeMap::new();
        for (number, arrivals) in arrivals(observed) {
            let repeat = Repeat::new(&fit, jobs, (arrivals, &startups), reference.until)?;
            repeats.insert(number, repeat);
        }
        let conditions = |Observed { recorded: Recorded { run, .. }, .. }: &Observed<'_>| {
            let (speeds, background) = (speed.over_time(run), background.on_nodes(run.host.others));
            ((run.arm.clone(), run.repeat), Conditions { speeds, background })
        };
        let conditions = observed.iter().map(conditions).collect();
        let text = repeats.get(&run.repeat).map(|repeat| repeat.text.clone());
        Ok(Self {
            text: text.ok_or("the run of `none` belongs to no repeat")?,
            from: format!(
                "{}, repeat {} (other recordings of the same jobs: {})",
                run.arm,
                run.repeat,
                more.len()
            ),
            fit,
            speed,
            conditions,
            repeats,
            simulations: SIMULATIONS,
        })
    }

    /// The same, simulating at least this many runs of an arm.
    pub(crate) fn simulating(self, simulations: u64) -> Self {
        Self { simulations, ..self }
    }

    /// Completes the references with each job's fitted time alone and with equal shares.
    pub(crate) fn complete(&self, reference: ReferenceTimes) -> ReferenceTimes {
        let isolated = self.repeats.values().next().map(Repeat::isolated);
        let equal_share =
            self.repeats.iter().map(|(number, repeat)| (*number, repeat.equal_share()));
        ReferenceTimes {
            isolated: isolated.unwrap_or(reference.isolated),
            equal_share: equal_share.collect(),
            ..reference
        }
    }

    /// A figure averaged over the nodes that have it.
    pub(super) fn of_nodes(&self, figure: impl Fn(&NodeFit) -> Option<f64>) -> Option<f64> {
        mean(&self.fit.nodes.iter().filter_map(figure).collect::<Vec<f64>>())
    }

    /// Simulates the arm's undisturbed repeats, each with the speed and the background load that the machine
    /// had in that run.
    pub(super) fn simulate(&self, arm: &ArmFindings, reference: &ReferenceTimes) -> Trajectories {
        let counted = arm.counted().count();
        let all = self.simulations;
        let seeds = all.div_ceil(u64::try_from(counted).unwrap_or(all).max(1));
        let each = arm.counted().flat_map(|run| {
            let number = run.repeat;
            let conditions = self.conditions.get(&(arm.facts.name.clone(), number));
            let conditions = conditions.cloned().unwrap_or_default();
            let repeat = self.repeats.get(&number);
            let trajectories =
                repeat.map(|its| its.simulate((number, &conditions), &arm.facts, seeds, reference));
            trajectories
                .into_iter()
                .flatten()
                .map(move |(seed, trajectory)| ((number, seed), trajectory))
        });
        each.collect()
    }

    /// The bounds of each repeat, comparable with a measured run's figures.
    pub(super) fn bounds(&self) -> BTreeMap<u32, BTreeMap<String, Bound>> {
        self.repeats.iter().map(|(number, repeat)| (*number, repeat.bounds())).collect()
    }

    /// The bounds of a repeat's jobs, with all times multiplied by `scale`.
    pub(crate) fn bounds_of(&self, repeat: u32, scale: f64) -> Option<Bounds> {
        Some(self.repeats.get(&repeat)?.bounds_of(scale))
    }
}

/// When the jobs arrived in each repeat, from one of its runs: all arms have the same arrivals.
fn arrivals(observed: &[Observed<'_>]) -> BTreeMap<u32, Vec<f64>> {
    let mut found = BTreeMap::new();
    // Jobs of a disturbed run may have started late, so it is used only if the repeat has no other run.
    for run in observed.iter().filter(|run| run.counts()).chain(observed) {
        let run = &run.recorded.run;
        if run.repeat == 0 {
            continue;
        }
        let arrivals = || run.jobs.iter().map(|job| job.arrived).collect();
        found.entry(run.repeat).or_insert_with(arrivals);
    }
    found
}

/// Only one of several equally fast jobs was calibrated: its recordings, under the names of the others.
fn alike(jobs: &[JobFacts], calibration: &[Recording]) -> Vec<Recording> {
    let mut found = Vec::new();
    for (place, JobFacts { job, .. }) in jobs.iter().enumerate() {
        let before = jobs.iter().take(place).map(|facts| &facts.job);
        if let Some(first) = before.into_iter().find(|other| job.is_as_fast_as(other)) {
            found.extend(
                calibration.iter().filter_map(|its| its.with_job_named(&first.name, &job.name)),
            );
        }
    }
    found
}

/// The median run by mean completion time.
fn median_run<'a, 'b>(runs: &'a [&'b Observed<'b>]) -> Option<&'a &'b Observed<'b>> {
    let took = |run: &Observed<'_>| {
        let jobs = run.recorded.run.jobs.iter();
        jobs.map(|job| job.ended - job.arrived).sum::<f64>()
    };
    let mut order: Vec<&&Observed<'_>> = runs.iter().collect();
    order.sort_by(|a, b| took(a).total_cmp(&took(b)));
    order.get(order.len().saturating_sub(1) / 2).copied()
}
