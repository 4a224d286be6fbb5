//! Publishes snapshots for everything that faces people.

use std::collections::BTreeMap;
use std::sync::Arc;

use paceline_api::clock::unix_seconds;
use paceline_api::live::snapshot::{
    CountsView, JobView, NodeView, ShadowView, Snapshot, Standing, TaskView, UsedView,
};
use paceline_cgroup::Used;
use paceline_policy::engine::JobStatus;
use paceline_policy::{JobDecision, JobId, Moment, Share};
use paceline_runtime::processes;
use paceline_wire::Progress;

use super::watched::WatchedContainer;
use super::{Controller, Shadow};
use crate::endpoint;
use crate::migration::MigrationMethod;
use crate::migration::moves::MigrationQueue;
use crate::observe::node::Machine;

impl Controller {
    /// Publishes the present state.
    pub(super) fn publish(&self) {
        let before = Arc::clone(&self.channels.snapshots.borrow());
        let lasting = before.lasting();
        let snapshot = Snapshot {
            now: unix_seconds(),
            t: self.clock.now().seconds(),
            node: NodeView { cpu: self.node_cpu, ..lasting.node },
            jobs: self.views(),
            moves: self.moves.as_ref().map(MigrationQueue::views).unwrap_or_default(),
            decision: self.recorder.latest().map(|decided| decided.view.clone()),
            shadows: self.recorder.shadows().iter().map(shadow).collect(),
            cost: self.tally.view(self.inventory.proc(), self.engine.counters()),
            ..lasting
        };
        self.channels.snapshots.send_replace(Arc::new(snapshot));
    }

    fn views(&self) -> Vec<JobView> {
        let watched = self.inventory.candidates().map(|(_, candidate)| {
            let status = self.engine.status(candidate.job());
            let decided = self.recorder.latest();
            let said = decided.and_then(|decided| decided.about(candidate.job()));
            view(self.inventory.machine(), self.method(), candidate, status, said)
        });
        let refused = self.inventory.refused().map(|(id, refused)| JobView {
            job: refused.name.clone(),
            container: id.to_owned(),
            name: refused.name.clone(),
            trouble: Some(refused.why.clone()),
            ..JobView::default()
        });
        let mut views: Vec<JobView> = watched.chain(refused).collect();
        views.sort_by(|a, b| (&a.job, &a.container).cmp(&(&b.job, &b.container)));
        views
    }
}

fn view(
    machine: &Machine,
    method: MigrationMethod,
    candidate: &WatchedContainer,
    status: Option<JobStatus>,
    said: Option<(f64, &JobDecision)>,
) -> JobView {
    let progress = candidate.progress();
    let progress = progress.as_deref();
    let (labels, figures) = (&candidate.labels, &candidate.figures);
    let share = |cpus: f64| (cpus / machine.cpus).min(1.0);
    let reached = progress.map(|progress| progress.reached).unwrap_or_default();
    // The policy does not decide about pinned and released jobs.
    let free = matches!(candidate.standing, Standing::Managed | Standing::Ending);
    let (decided_at, said) = said.filter(|_| free).unzip();
    let outlook = said.and_then(|said| said.outlook.as_deref());
    let moment = |seconds: Option<f64>| Some(decided_at? + seconds?);
    JobView {
        job: candidate.job().to_string(),
        container: candidate.container.id.clone(),
        name: candidate.container.name.clone(),
        standing: candidate.standing,
        node: candidate.node().map(str::to_owned),
        unmovable: candidate.node().and_then(|_| candidate.unmovable(method)),
        trouble: candidate.trouble(),
        page: progress.and_then(|_| endpoint::page(&candidate.container, &labels.endpoint)),
        state: progress.map(|progress| format!("{:?}", progress.state).to_lowercase()),
        loss: figures.loss,
        last_loss: progress.and_then(|progress| progress.eval.value),
        direction: status.as_ref().map_or(labels.direction.unwrap_or_default(), |a| a.direction),
        targets: status.as_ref().map_or_else(|| candidate.own_targets(), |a| a.targets),
        acceptable_at: reached.acceptable_at,
        objective_at: reached.objective_at,
        step: progress.and_then(|progress| progress.step),
        total_steps: progress.and_then(|progress| progress.total_steps),
        batch_latency: figures.batch_latency,
        reported_at: progress.and_then(|progress| progress.eval.updated_at),
        cpu: figures.cpu,
        throttled: figures.throttled,
        memory: figures.memory(),
        memory_peak: figures.metered.memory_peak,
        blkio: figures.metered.blkio,
        net: figures.metered.net,
        limit: Some(candidate.last_in_force(machine).get()),
        chosen: status.as_ref().filter(|_| free).map(|status| status.chosen.get()),
        min: candidate.floor().map(share),
        max: candidate.ceiling(machine).map(Share::get),
        weight: labels.weight,
        guards: status.map(|status| status.guards).unwrap_or_default().into_iter().collect(),
        class: said.map(|said| said.class.to_owned()),
        score: said.and_then(|said| said.score),
        why: said.map(|said| said.why.to_string()),
        work_left: outlook.and_then(|outlook| outlook.work_left),
        ends_at: moment(outlook.and_then(|outlook| outlook.ends_in)),
        fair_ends_at: moment(outlook.and_then(|outlook| outlook.fair_ends_in)),
        waits_for: outlook.and_then(|outlook| outlook.waits_for.as_ref()).map(JobId::to_string),
        counts: progress.map(|progress| counts(progress, figures.used)),
        task: task(&candidate.container.labels),
        max_slowdown: labels.max_slowdown,
        may_terminate: labels.terminate,
        work: labels.work,
        owner: processes::owner(&candidate.container),
    }
}

fn counts(progress: &Progress, used: Option<(Moment, Used)>) -> CountsView {
    let Progress { instance, eval, batch_latency, .. } = progress;
    let used = used.map(|(at, used)| UsedView {
        at: at.seconds(),
        cpu_seconds: used.cpu_seconds,
        throttled_seconds: used.throttled_seconds,
    });
    CountsView {
        instance: instance.clone(),
        losses: eval.count,
        loss_sum: eval.sum,
        loss_max_abs: eval.max_abs,
        batches: batch_latency.count,
        batch_seconds: batch_latency.sum,
        used,
    }
}

/// The Swarm task that a container is, by the labels that Swarm sets.
fn task(labels: &BTreeMap<String, String>) -> Option<TaskView> {
    let said = |key: &str| labels.get(key).cloned();
    let service = said("com.docker.swarm.service.id")?;
    let name = said("com.docker.swarm.service.name")?;
    Some(TaskView { service, name, task: said("com.docker.swarm.task.id")? })
}

fn shadow(shadow: &Shadow) -> ShadowView {
    ShadowView {
        policy: shadow.policy().to_owned(),
        limits: shadow.limits().iter().map(|(job, share)| (job.to_string(), share.get())).collect(),
        distance: shadow.distance(),
        decisions: shadow.decisions(),
        disagreements: shadow.disagreements(),
    }
}
