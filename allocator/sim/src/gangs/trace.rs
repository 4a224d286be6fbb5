//! Records a run of gangs over time, for charts.

use paceline_policy::cluster::gangs::State;

use super::{Cluster, Member};
use crate::trace::Held;

impl Cluster<'_> {
    /// Records the state from now until `to`.
    pub(super) fn trace_until(&mut self, to: f64) {
        let now = self.now;
        let Some(watch) = self.watch.as_mut().filter(|watch| watch.wants(now, to)) else { return };
        let all: f64 = self.scenario.nodes.iter().map(|node| node.cpus).sum();
        let held = |(job, member): (usize, &Member<'_>)| {
            let class = match member.state {
                State::Finished => return None,
                State::Waiting => "waiting",
                State::Running => "running",
            };
            let here = member.gang.arrive <= now;
            here.then(|| Held { job, share: member.held() / all, limit: 1.0, class })
        };
        watch.note(now, self.gangs.iter().enumerate().filter_map(held).collect());
    }
}
