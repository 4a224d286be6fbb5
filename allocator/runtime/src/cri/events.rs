//! Starts and ends of containers, and their use.
//!
//! Containerd before 2.0 has one queue of events for all of its clients, so that each event reaches
//! only one of them: reading it would take events away from the kubelet. There, and where the runtime
//! has no events, the list of containers is read once a second.

use std::collections::BTreeMap;
use std::time::Duration;

use paceline_cgroup::Used;
use tokio::time::sleep;

use super::proto::{self, ContainerEventResponse};
use super::{Cri, grpc, settings, settings_of_status};
use crate::{ContainerEvent, RuntimeError};

/// How often the list of containers is read, and a container's use.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The containers of pods that opted in, with what an event about them holds.
type Listing = BTreeMap<String, BTreeMap<String, i32>>;

/// Calls `on_event` until the runtime's stream ends, or its list cannot be read.
pub(super) async fn follow(cri: &Cri, mut on_event: impl FnMut(ContainerEvent)) {
    let Ok(version) = cri.channel.call::<proto::VersionResponse>("Version", &proto::Empty {}).await
    else {
        return;
    };
    let end = if has_own_events(&version.runtime_name, &version.runtime_version) {
        stream(cri, &mut on_event).await
    } else {
        Ended::Unsupported
    };
    if end == Ended::Unsupported {
        drop(poll(cri, on_event).await);
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// The stream ended, and may be opened again.
    Stream,
    /// The runtime has no events.
    Unsupported,
}

/// Whether each client of the runtime gets every event.
fn has_own_events(name: &str, version: &str) -> bool {
    let major = version.trim_start_matches('v').split('.').next();
    let major = major.and_then(|major| major.parse::<u32>().ok());
    name != "containerd" || major.is_some_and(|major| major >= 2)
}

async fn stream(cri: &Cri, on_event: &mut impl FnMut(ContainerEvent)) -> Ended {
    let end = |error: grpc::CallError| match error.code() {
        Some(grpc::UNIMPLEMENTED) => Ended::Unsupported,
        _ => Ended::Stream,
    };
    let mut answers = match cri.channel.stream("GetContainerEvents", &proto::Empty {}).await {
        Ok(answers) => answers,
        Err(error) => return end(error),
    };
    loop {
        match answers.next::<ContainerEventResponse>().await {
            Ok(Some(event)) => {
                let pod = event.pod_sandbox_status.unwrap_or_default();
                let labels = settings_of_status(&pod);
                // A new container can make another one of its pod ambiguous.
                let others = event.containers_statuses.into_iter().map(|status| status.id);
                let ids: std::collections::BTreeSet<String> =
                    others.chain([event.container_id]).collect();
                for id in ids {
                    on_event(ContainerEvent { id, labels: labels.clone() });
                }
            }
            Ok(None) => return Ended::Stream,
            Err(error) => return end(error),
        }
    }
}

async fn poll(cri: &Cri, mut on_event: impl FnMut(ContainerEvent)) -> Result<(), RuntimeError> {
    let mut before: Option<Listing> = None;
    loop {
        let mut now = Listing::new();
        let mut labels = BTreeMap::new();
        for (pod, containers) in cri.pods().await? {
            let states = containers.into_iter().map(|one| (one.id, one.state));
            now.insert(pod.id.clone(), states.collect());
            labels.insert(pod.id.clone(), settings(&pod));
        }
        for (pod, ids) in changed(before.as_ref(), &now) {
            for id in ids {
                let labels = labels.get(pod).cloned().unwrap_or_else(opted_in);
                on_event(ContainerEvent { id: id.clone(), labels });
            }
        }
        before = Some(now);
        sleep(POLL_INTERVAL).await;
    }
}

/// The label of a pod that had opted in, and is gone.
fn opted_in() -> BTreeMap<String, String> {
    [(paceline_api::labels::ENABLE.to_owned(), "true".to_owned())].into()
}

/// The pods whose containers differ, each with all of its containers.
fn changed<'a>(before: Option<&'a Listing>, now: &'a Listing) -> Vec<(&'a str, Vec<&'a String>)> {
    let Some(before) = before else { return Vec::new() };
    let differs = |pod: &&String| before.get(*pod) != now.get(*pod);
    let mut pods: Vec<&String> = before.keys().chain(now.keys()).filter(differs).collect();
    pods.sort();
    pods.dedup();
    let ids = |pod: &String| {
        let of = |listing: &'a Listing| listing.get(pod).into_iter().flat_map(BTreeMap::keys);
        let mut ids: Vec<&String> = of(before).chain(of(now)).collect();
        ids.sort();
        ids.dedup();
        ids
    };
    pods.into_iter().map(|pod| (pod.as_str(), ids(pod))).collect()
}

/// Calls `on_event` with what a container has used, until the runtime fails.
pub(super) async fn follow_use(cri: &Cri, id: &str, mut on_event: impl FnMut(Used)) {
    let asked = proto::ContainerStatsRequest { container_id: id.to_owned() };
    loop {
        let answer = cri.channel.call::<proto::ContainerStatsResponse>("ContainerStats", &asked);
        let Ok(answer) = answer.await else { return };
        if let Some(used) = answer.stats.as_ref().and_then(used) {
            on_event(used);
        }
        sleep(POLL_INTERVAL).await;
    }
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "exact below 2^53 ns")]
fn used(stats: &proto::ContainerStats) -> Option<Used> {
    let nanoseconds = stats.cpu.as_ref()?.usage_core_nano_seconds.as_ref()?.value;
    let memory = stats.memory.as_ref().and_then(|memory| memory.working_set_bytes.as_ref());
    Some(Used {
        cpu_seconds: nanoseconds as f64 / 1e9,
        // CRI does not say how long it was throttled.
        throttled_seconds: 0.0,
        memory: memory.map(|bytes| bytes.value),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(pods: &[(&str, &[(&str, i32)])]) -> Listing {
        let pod = |(pod, containers): &(&str, &[(&str, i32)])| {
            let containers = containers.iter().map(|(id, state)| ((*id).to_owned(), *state));
            ((*pod).to_owned(), containers.collect())
        };
        pods.iter().map(pod).collect()
    }

    #[test]
    fn change_in_a_pod_touches_all_its_containers() {
        let before = listing(&[("a", &[("1", 1)]), ("b", &[("2", 1)]), ("c", &[("3", 1)])]);
        let now = listing(&[("a", &[("1", 1), ("4", 1)]), ("b", &[("2", 1)])]);
        let found = changed(Some(&before), &now);
        let expected = [("a", vec!["1".to_owned(), "4".to_owned()]), ("c", vec!["3".to_owned()])];
        let found: Vec<_> =
            found.into_iter().map(|(pod, ids)| (pod, ids.into_iter().cloned().collect())).collect();
        assert_eq!(found, expected);
        assert!(changed(None, &now).is_empty() && changed(Some(&now), &now).is_empty());
    }

    #[test]
    fn events_of_containerd_1_are_left_to_the_kubelet() {
        for (name, version, own) in [
            ("containerd", "1.7.24~ds1", false),
            ("containerd", "v2.1.9", true),
            ("containerd", "2.0.0", true),
            ("containerd", "", false),
            ("cri-o", "1.30.0", true),
        ] {
            assert_eq!(has_own_events(name, version), own, "{name} {version}");
        }
    }
}
