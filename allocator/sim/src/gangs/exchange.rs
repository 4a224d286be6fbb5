//! The network traffic of a placement of parameter servers and workers.

use paceline_policy::cluster::{Role, Task, TaskFrame};
use paceline_policy::policies::AnyPolicy;
use paceline_policy::{JobId, TaskPolicy};

use super::frame_node;
use crate::scenario::{Arm, Gang, Scenario, ScenarioError};

/// Bytes of a parameter.
const BYTES_PER_PARAMETER: f64 = 4.0;
/// A step sends gradients one way and parameters the other.
const DIRECTIONS: f64 = 2.0;

/// The traffic of one placement of one gang.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Exchange {
    /// The placement: a layout of the scenario, or a policy.
    pub placement: String,
    /// The gang.
    pub gang: String,
    /// Pairs of a parameter server and a worker.
    pub pairs: u32,
    /// Those whose halves are on different nodes.
    pub crossing: u32,
    /// Bytes from node to node in one step.
    pub step_bytes: f64,
    /// Bytes from node to node in all steps.
    pub bytes: f64,
    /// Tasks without a node: their pairs do not count.
    pub unplaced: u32,
}

/// The traffic of every gang under every layout of the scenario, and under the given placement
/// policies.
pub fn exchanges(scenario: &Scenario, arms: &[Arm]) -> Result<Vec<Exchange>, ScenarioError> {
    let mut all = Vec::new();
    for layout in &scenario.layouts {
        for gang in &scenario.gangs {
            let servers: Vec<Option<&str>> =
                layout.servers.iter().map(|node| Some(node.as_str())).collect();
            let workers: Vec<Option<&str>> =
                gang.workers.nodes.iter().map(|node| Some(node.as_str())).collect();
            all.push(exchange(&layout.name, gang, &servers, &workers));
        }
    }
    for arm in arms {
        let AnyPolicy::Tasks(mut policy) = scenario.policy(arm)? else {
            return Err(ScenarioError::NotOfGangs(arm.policy.clone()));
        };
        all.extend(placed(scenario, &arm.to_string(), policy.as_mut()));
    }
    Ok(all)
}

/// The traffic if a policy places all gangs at once.
fn placed(scenario: &Scenario, name: &str, policy: &mut dyn TaskPolicy) -> Vec<Exchange> {
    let mut frame = TaskFrame {
        nodes: scenario.nodes.iter().map(frame_node).collect(),
        ..TaskFrame::default()
    };
    frame.tasks = scenario.gangs.iter().flat_map(tasks).collect();
    let answer = policy.decide(&frame);
    let node = |task: &Task| {
        let chosen = answer.place.iter().find(|bound| bound.task == task.id);
        chosen.map(|bound| bound.node.clone()).or_else(|| task.node.clone())
    };
    let of = |gang: &Gang, role: Role| {
        let own = frame.tasks.iter().filter(|task| task.job == gang.id && task.role == role);
        own.map(node).collect::<Vec<Option<String>>>()
    };
    let exchange = |gang: &Gang| {
        let (servers, workers) = (of(gang, Role::Ps), of(gang, Role::Worker));
        let servers: Vec<Option<&str>> = servers.iter().map(Option::as_deref).collect();
        let workers: Vec<Option<&str>> = workers.iter().map(Option::as_deref).collect();
        exchange(name, gang, &servers, &workers)
    };
    scenario.gangs.iter().map(exchange).collect()
}

fn tasks(gang: &Gang) -> Vec<Task> {
    let of = |role: Role, kind: &str, spec: &crate::scenario::Tasks| {
        let task = |number: u32| Task {
            id: JobId::new(format!("{}-{kind}-{number:04}", gang.id)).expect("it has a name"),
            job: gang.id.clone(),
            role,
            cpu: Some(spec.cpu),
            memory: Some(spec.memory),
            node: usize::try_from(number).ok().and_then(|at| spec.nodes.get(at).cloned()),
        };
        (0..spec.min).map(task).collect::<Vec<_>>()
    };
    let mut all = of(Role::Ps, "ps", &gang.servers);
    all.extend(of(Role::Worker, "worker", &gang.workers));
    all
}

fn exchange(
    placement: &str,
    gang: &Gang,
    servers: &[Option<&str>],
    workers: &[Option<&str>],
) -> Exchange {
    let (mut pairs, mut crossing) = (0_u32, 0_u32);
    for server in servers.iter().flatten() {
        for worker in workers.iter().flatten() {
            pairs += 1;
            crossing += u32::from(server != worker);
        }
    }
    let lost = servers.iter().chain(workers).filter(|node| node.is_none()).count();
    let part = gang.parameters / f64::from(gang.servers.min.max(1));
    let step_bytes = f64::from(crossing) * DIRECTIONS * BYTES_PER_PARAMETER * part;
    Exchange {
        placement: placement.to_owned(),
        gang: gang.id.to_string(),
        pairs,
        crossing,
        step_bytes,
        bytes: step_bytes * gang.steps,
        unplaced: u32::try_from(lost).unwrap_or(u32::MAX),
    }
}
