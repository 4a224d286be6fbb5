//! The end of a run.

use super::{Done, World};
use crate::fluid::Index;

impl World<'_> {
    /// The final figures of the run.
    pub(super) fn finish(mut self) -> Done {
        let end = if self.left > 0 { self.latest() } else { self.last_end };
        self.trace_until(end);
        self.done.trace = self.watch.take().map(|watch| watch.end(end));
        let (mut used, mut wasted, mut available) = (0.0, 0.0, 0.0);
        for state in &mut self.nodes {
            state.fluid.advance(end);
            used += state.fluid.used();
            wasted += state.fluid.wasted();
            available += state.up_time(end);
            let here: Vec<Index> = state.fluid.jobs().collect();
            for index in here {
                let Some(live) = self.jobs.get_mut(index) else { continue };
                if let Some(tally) = state.fluid.tally(index) {
                    live.count_loss(end, live.done(tally));
                }
                if live.start.is_none() {
                    live.outcome.batch_latency = Some(live.job.batch / state.fluid.rate_of(index));
                }
            }
        }
        // Jobs that are not running now have a loss, too.
        for live in self.jobs.present() {
            live.count_loss(end, live.before);
        }
        let part = |seconds: f64| Some(if available > 0.0 { seconds / available } else { 0.0 });
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

    /// The end of a run with unfinished jobs.
    fn latest(&self) -> f64 {
        if self.run.scenario.until.is_finite() { self.run.scenario.until } else { self.now }
    }
}
