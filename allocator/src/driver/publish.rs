//! What people are shown: a snapshot of all that is known.

use std::collections::BTreeMap;
use std::sync::Arc;

use paceline_policy::engine::Account;
use paceline_policy::{Decision, JobDecision, JobId, Moment, Shadow};
use paceline_wire::Progress;

use super::Driver;
use super::candidate::Candidate;
use crate::clock::unix_seconds;
use crate::live::snapshot::{
    CountsView, DecisionView, JobView, NodeView, ShadowView, Snapshot, Standing, TaskView, UsedView,
};
use crate::migrate::Means;
use crate::migrate::moves::Moves;
use crate::observe::cgroup::Used;
use crate::observe::node::Machine;

impl Driver {
    /// Shows what is known now.
    pub(super) fn publish(&self) {
        let before = Arc::clone(&self.stage.snapshots.borrow());
        let lasting = before.lasting();
        let snapshot = Snapshot {
            now: unix_seconds(),
            t: self.clock.now().seconds(),
            node: NodeView { cpu: self.node_cpu, ..lasting.node },
            jobs: self.views(),
            moves: self.moves.as_ref().map(Moves::views).unwrap_or_default(),
            decision: self.decided.as_ref().map(|decided| decided.view.clone()),
            shadows: self.shadows.iter().map(shadow).collect(),
            cost: self.tally.view(self.roster.proc(), self.engine.counters()),
            ..lasting
        };
        self.stage.snapshots.send_replace(Arc::new(snapshot));
    }

    fn views(&self) -> Vec<JobView> {
        let watched = self.roster.candidates().map(|(_, candidate)| {
            let account = self.engine.account(candidate.job());
            let decided = self.decided.as_ref();
            let said = decided.and_then(|decided| decided.of(candidate.job()));
            view(self.roster.machine(), self.means(), candidate, account, said)
        });
        let refused = self.roster.refused().map(|(id, refused)| JobView {
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

/// The latest decision.
#[derive(Debug)]
pub(super) struct Decided {
    pub(super) view: DecisionView,
    pub(super) decision: Decision,
}

impl Decided {
    /// What was said of a job, and when in Unix seconds.
    fn of(&self, job: &JobId) -> Option<(f64, &JobDecision)> {
        Some((self.view.at, self.decision.jobs.get(job)?))
    }
}

fn view(
    machine: &Machine,
    means: Means,
    candidate: &Candidate,
    account: Option<Account>,
    said: Option<(f64, &JobDecision)>,
) -> JobView {
    let progress = candidate.progress();
    let progress = progress.as_deref();
    let (labels, figures) = (&candidate.labels, &candidate.figures);
    let share = |cpus: f64| (cpus / machine.cpus).min(1.0);
    let reached = progress.map(|progress| progress.reached).unwrap_or_default();
    // The policy has no say in what is held or left alone.
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
        unmovable: candidate.node().and_then(|_| candidate.unmovable(means)),
        trouble: candidate.trouble(),
        state: progress.map(|progress| format!("{:?}", progress.state).to_lowercase()),
        loss: figures.loss,
        last_loss: progress.and_then(|progress| progress.eval.value),
        direction: account.as_ref().map_or(labels.direction.unwrap_or_default(), |a| a.direction),
        targets: account.as_ref().map_or_else(|| candidate.own_targets(), |a| a.targets),
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
        chosen: account.as_ref().filter(|_| free).map(|account| account.chosen.get()),
        min: labels.min_cpus.map(share),
        max: labels.max_cpus.map(share),
        weight: labels.weight,
        guards: account.map(|account| account.guards).unwrap_or_default().into_iter().collect(),
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

/// The task that a container is, by what Swarm writes on it.
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
