use super::*;
use crate::cluster::gangs::{Gang, Layout, Servers, State, Workers};
use crate::frame::MAX_TASKS;
use crate::frame::Node;

mod admission;
mod loops;
mod properties;
mod reservations;
mod scaling;
mod search;

/// A node with `cpus` cores and as many bytes, so that both resources are equally scarce.
fn node(name: &str, cpus: f64) -> Node {
    Node { name: name.into(), cpus: Some(cpus), memory: Some(cpus), ..Node::default() }
}

fn nodes<const N: usize>(nodes: [(&str, f64); N]) -> Vec<Node> {
    nodes.map(|(name, cpus)| node(name, cpus)).to_vec()
}

/// A waiting job: one parameter server of `server` cores (none if 0), `min` workers of `worker`
/// cores, as many bytes as cores.
fn gang(id: &str, submitted: f64, server: f64, min: u32, worker: f64) -> Gang {
    Gang {
        id: JobId::new(id).unwrap(),
        submitted: Some(submitted),
        state: State::Waiting,
        ps: Servers { count: (server > 0.0).into(), cpu: Some(server), memory: Some(server) },
        worker: Workers { min, max: None, cpu: Some(worker), memory: Some(worker) },
        placement: Layout::default(),
    }
}

/// The same job, running.
fn running<const P: usize, const W: usize>(
    gang: Gang,
    ps: [(&str, u32); P],
    workers: [(&str, u32); W],
) -> Gang {
    let placement = Layout { ps: counts(ps), workers: counts(workers) };
    Gang { state: State::Running, placement, ..gang }
}

fn counts<const N: usize>(counts: [(&str, u32); N]) -> BTreeMap<String, u32> {
    counts.map(|(name, count)| (name.to_owned(), count)).into()
}

fn frame(t: f64, nodes: &[Node], jobs: &[Gang]) -> GangFrame {
    GangFrame { t, nodes: nodes.to_vec(), jobs: jobs.to_vec() }
}

fn policy(variant: Variant) -> Kod2 {
    Kod2::new(variant, &Params::default()).unwrap()
}

/// What a fresh policy answers to one frame, in both variants alike.
fn decide(t: f64, nodes: &[Node], jobs: &[Gang]) -> Scaling {
    let [resolved, published] = [Variant::Resolved, Variant::Published]
        .map(|variant| policy(variant).decide(&frame(t, nodes, jobs)));
    assert_eq!(resolved, published);
    resolved
}

fn started(scaling: &Scaling) -> Vec<&str> {
    scaling.start.iter().map(|start| start.job.as_str()).collect()
}

fn waiting(scaling: &Scaling) -> Vec<&str> {
    scaling.waiting.iter().map(|waiting| waiting.job.as_str()).collect()
}

fn changes(changes: &[Change]) -> Vec<(&str, &str, u32)> {
    changes.iter().map(|c| (c.job.as_str(), c.node.as_str(), c.count)).collect()
}

fn reason(scaling: &Scaling, id: &str) -> String {
    let waiting = scaling.waiting.iter().filter(|waiting| waiting.job.as_str() == id);
    let start = scaling.start.iter().filter(|start| start.job.as_str() == id);
    let all: Vec<_> = waiting.map(|w| &w.why).chain(start.map(|s| &s.why)).collect();
    assert_eq!(all.len(), 1, "{id} is either in start or in waiting, once");
    all[0].to_string()
}
