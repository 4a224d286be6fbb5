//! The end of a run.

use super::{Done, World};
use crate::fluid::Index;

impl World<'_> {
    /// The figures of the run as it stands.
    pub(super) fn finish(mut self) -> Done {
        let end = if self.left > 0 { self.latest() } else { self.last_end };
        self.note_until(end);
        self.done.trace = self.watch.take().map(|watch| watch.end(end));
        let (mut used, mut wasted, mut there_was) = (0.0, 0.0, 0.0);
        for station in &mut self.stations {
            station.fluid.advance(end);
            used += station.fluid.used();
            wasted += station.fluid.wasted();
            there_was += station.up_time(end);
            let here: Vec<Index> = station.fluid.jobs().collect();
            for index in here {
                let Some(live) = self.jobs.get_mut(index) else { continue };
                if let Some(tally) = station.fluid.tally(index) {
                    live.count_loss(end, live.done(tally));
                }
                if live.start.is_none() {
                    live.outcome.batch_latency =
                        Some(live.job.batch / station.fluid.rate_of(index));
                }
            }
        }
        // Those that run nowhere just now have a loss all the same.
        for live in self.jobs.here() {
            live.count_loss(end, live.before);
        }
        let part = |seconds: f64| Some(if there_was > 0.0 { seconds / there_was } else { 0.0 });
        let outcome = &mut self.done.outcome;
        (outcome.until, outcome.utilisation, outcome.stranded) = (end, part(used), part(wasted));
        outcome.jobs = self.jobs.outcomes();
        if self.can_fail {
            for job in &mut outcome.jobs {
                job.lost_work.get_or_insert(0.0);
            }
        }
        self.done
    }

    /// The end of a run in which some job is not over.
    fn latest(&self) -> f64 {
        if self.run.scenario.until.is_finite() { self.run.scenario.until } else { self.now }
    }
}
