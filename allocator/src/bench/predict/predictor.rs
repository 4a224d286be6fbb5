//! Jobs fitted to the solo and `none` runs, and runs of them under other policies.

use std::collections::BTreeMap;

use paceline_policy::JobId;
use paceline_sim::bounds::{Bound, Bounds};
use paceline_sim::fit::{Fit, NodeFit, Recording, fit};

use super::super::calibrate::Solo;
use super::super::outcome::{ArmFindings, Course, Ground, JobFacts, Observed, mean};
use super::super::record::Recorded;
use super::others::Others;
use super::repeat::Repeat;
use super::speed::Speed;
use super::startup::startups;

/// Noise of the jobs' reports is drawn: predictions are means over so many runs of an arm at least.
pub(crate) const SIMULATIONS: u64 = 120;

/// An arm's simulated runs, by repeat and seed.
pub(crate) type Courses = BTreeMap<(u32, u64), Course>;

/// What the machine was like in a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Conditions {
    /// How fast it was, each from so many seconds after the run began on.
    pub(super) speeds: Vec<(f64, f64)>,
    /// What others took of its nodes, by their names.
    pub(super) others: BTreeMap<String, f64>,
}

/// What the simulator needs to know of this machine and its jobs.
#[derive(Debug)]
pub(crate) struct Predictor {
    /// The scenario of the repeat that was fitted, as TOML.
    pub(crate) text: String,
    pub(super) from: String,
    pub(super) fit: Fit,
    /// How fast the machine was, in that run and in others.
    pub(super) speed: Speed,
    /// What the machine was like in each run, by arm and repeat.
    conditions: BTreeMap<(String, u32), Conditions>,
    repeats: BTreeMap<u32, Repeat>,
    /// How many runs of an arm are simulated at least.
    simulations: u64,
}

impl Predictor {
    /// Fits the `none` run in the middle; the others and the recordings of the jobs alone tell more of
    /// the same jobs. A shared machine had another speed then: durations of batches alone count as what
    /// they would have been at that of the runs, or else that would be taken for what neighbours cost. All
    /// that were `observed` tell when jobs arrive in which repeat. What cannot be fitted is said in words.
    pub(crate) fn fit(
        jobs: &[JobFacts],
        ground: &Ground,
        observed: &[Observed<'_>],
        none: &[&Observed<'_>],
        calibration: &[Solo],
    ) -> Result<Self, String> {
        let usable: Vec<&Observed<'_>> = none.iter().copied().filter(|run| run.counts()).collect();
        let first = *middle(&usable).ok_or(if none.is_empty() {
            "there is no run of `none`"
        } else {
            "every run of `none` was disturbed"
        })?;
        let recording = first.frames.as_ref().map_err(Clone::clone)?;
        let rest = usable.iter().filter(|run| !std::ptr::eq(**run, first));
        let speed = Speed::of(&usable);
        // At a slower machine's speed they would have been shorter by as much as that was slower.
        let longer = |solo: &Solo, id: &JobId| {
            solo.speeds.get(id.as_str()).and_then(|then| speed.alone(*then))
        };
        let calibration: Vec<Recording> = calibration
            .iter()
            .map(|solo| solo.recording.with_durations(|id| longer(solo, id)))
            .collect();
        let mut more: Vec<Recording> =
            rest.filter_map(|run| run.frames.as_ref().ok()).chain(&calibration).cloned().collect();
        more.extend(alike(jobs, &calibration));
        let mut fit = fit(recording, &more).map_err(|error| error.to_string())?;
        let run = &first.recorded.run;
        let stopped = run.jobs.iter().filter(|its| ground.is_stopped(its));
        for its in stopped {
            // What it did until then is not its work: nobody knows that.
            let own = fit.jobs.iter_mut().filter(|own| own.id.as_str() == its.job);
            own.for_each(|own| own.work = f64::INFINITY);
        }
        let others = Others::of(&usable, &fit);
        let usual = others.on_nodes(None);
        for node in &mut fit.nodes {
            node.background = usual.get(&node.name).copied().map_or(node.background, Ok);
        }
        let startups = startups(jobs, &usable, &fit)?;
        let mut repeats = BTreeMap::new();
        for (number, arrivals) in arrivals(observed) {
            let repeat = Repeat::of(&fit, jobs, (arrivals, &startups), ground.until)?;
            repeats.insert(number, repeat);
        }
        let conditions = |Observed { recorded: Recorded { run, .. }, .. }: &Observed<'_>| {
            let (speeds, others) = (speed.course(run), others.on_nodes(run.host.others));
            ((run.arm.clone(), run.repeat), Conditions { speeds, others })
        };
        let conditions = observed.iter().map(conditions).collect();
        let text = repeats.get(&run.repeat).map(|repeat| repeat.text.clone());
        Ok(Self {
            text: text.ok_or("the `none` run is of no repeat")?,
            from: format!(
                "{}, repeat {}, beside other recordings of the same jobs: {}",
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

    /// The same, simulating so many runs of an arm.
    pub(crate) fn simulating(self, simulations: u64) -> Self {
        Self { simulations, ..self }
    }

    /// Fills in what each job takes alone and by equal shares.
    pub(crate) fn complete(&self, ground: &mut Ground) {
        if let Some(repeat) = self.repeats.values().next() {
            ground.alone = repeat.alone();
        }
        let equal = self.repeats.iter().map(|(number, repeat)| (*number, repeat.equal()));
        ground.equal = equal.collect();
    }

    /// A figure of the nodes, on average over those that have it.
    pub(super) fn of_nodes(&self, figure: impl Fn(&NodeFit) -> Option<f64>) -> Option<f64> {
        mean(&self.fit.nodes.iter().filter_map(figure).collect::<Vec<f64>>())
    }

    /// The repeats of the arm that count, as the simulator runs them, each on a machine as fast as it
    /// was at each moment, beside as much of others.
    pub(super) fn simulate(&self, arm: &ArmFindings, ground: &Ground) -> Courses {
        let counted = arm.counted().count();
        let all = self.simulations;
        let seeds = all.div_ceil(u64::try_from(counted).unwrap_or(all).max(1));
        let each = arm.counted().flat_map(|run| {
            let number = run.repeat;
            let conditions = self.conditions.get(&(arm.facts.name.clone(), number));
            let conditions = conditions.cloned().unwrap_or_default();
            let repeat = self.repeats.get(&number);
            let courses =
                repeat.map(|its| its.simulate((number, &conditions), &arm.facts, seeds, ground));
            courses.into_iter().flatten().map(move |(seed, course)| ((number, seed), course))
        });
        each.collect()
    }

    /// The bounds of each repeat, at a measured run's times.
    pub(super) fn bounds(&self) -> BTreeMap<u32, BTreeMap<String, Bound>> {
        self.repeats.iter().map(|(number, repeat)| (*number, repeat.bounds())).collect()
    }

    /// The bounds of a repeat's jobs where all times are `scale` times as long.
    pub(crate) fn bounds_of(&self, repeat: u32, scale: f64) -> Option<Bounds> {
        Some(self.repeats.get(&repeat)?.bounds_of(scale))
    }
}

/// When the jobs arrived in each repeat, as one of its runs tells: every arm's are the same draw.
fn arrivals(observed: &[Observed<'_>]) -> BTreeMap<u32, Vec<f64>> {
    let mut found = BTreeMap::new();
    // One that was disturbed may have begun its jobs late: it tells only where there is no other.
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

/// Of jobs that are as fast as another, one was calibrated: what it tells, told of the others.
fn alike(jobs: &[JobFacts], calibration: &[Recording]) -> Vec<Recording> {
    let mut found = Vec::new();
    for (place, JobFacts { job, .. }) in jobs.iter().enumerate() {
        let before = jobs.iter().take(place).map(|facts| &facts.job);
        if let Some(first) = before.into_iter().find(|other| job.is_as_fast_as(other)) {
            found.extend(calibration.iter().filter_map(|its| its.told_of(&first.name, &job.name)));
        }
    }
    found
}

/// The run in the middle by its mean completion time.
fn middle<'a, 'b>(runs: &'a [&'b Observed<'b>]) -> Option<&'a &'b Observed<'b>> {
    let took = |run: &Observed<'_>| {
        let jobs = run.recorded.run.jobs.iter();
        jobs.map(|job| job.ended - job.arrived).sum::<f64>()
    };
    let mut order: Vec<&&Observed<'_>> = runs.iter().collect();
    order.sort_by(|a, b| took(a).total_cmp(&took(b)));
    order.get(order.len().saturating_sub(1) / 2).copied()
}
