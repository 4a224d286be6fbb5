use std::time::Duration;

use paceline_api::labels::{self, Labels};

use super::fake::{Behavior, Fake, id};
use super::*;
use crate::{HostCpu, Runtime};

const OPTED_IN: &[(&str, &str)] = &[("paceline.dev/enable", "true")];

/// A runtime with the container `a1` of a pod that opted in.
fn one_job() -> Fake {
    let fake = Fake::start();
    fake.pod("vae", OPTED_IN, &[]);
    fake.container("a1", "vae", "train");
    fake
}

/// The text of an error with all of its causes.
fn chain(error: RuntimeError) -> String {
    format!("{:#}", anyhow::Error::from(error))
}

#[tokio::test]
async fn runtime_and_machine_are_described() {
    let fake = Fake::start();
    let description = fake.runtime().describe().await.unwrap();
    assert_eq!(description.id.as_deref(), Some("cri-containerd/var/lib/containerd/cri"));
    assert_eq!(description.data.as_deref(), Some("/var/lib/containerd/cri"));
    assert_eq!((description.cpus, description.memory), (Some(2), Some(2_097_152)));
    assert_eq!(description.version.as_deref(), Some("containerd 2.1.9"));
}

#[tokio::test]
async fn container_is_described_with_its_pod() {
    let fake = Fake::start();
    fake.pod("vae", OPTED_IN, &[("paceline.dev/acceptable", "-0.3")]);
    fake.container("a1", "vae", "train");
    let found = fake.runtime().inspect(&id("a1")).await.unwrap().unwrap();
    assert_eq!((found.name.as_str(), found.pid), ("lab/vae/train", Some(4711)));
    assert!(found.state.running && Labels::opted_in(&found.labels));
    assert_eq!(Labels::parse(&found.labels).unwrap().targets.acceptable, Some(-0.3));
    assert!(found.addresses.is_empty() && found.published.is_empty());
    assert_eq!(found.mounted, [Path::new("/checkpoints")]);
    assert_eq!(found.started_at, "2026-11-21T12:16:16.000000000Z");
    let expected =
        HostCpu { nano_cpus: 0, cpu_quota: 100_000, cpu_period: 100_000, cpu_shares: 204 };
    assert_eq!(found.host_config, expected);
    let pod = found.pod.unwrap();
    assert_eq!((pod.namespace.as_str(), pod.name.as_str()), ("lab", "vae"));
    assert!((pod.request - 0.2).abs() < 1e-9, "{}", pod.request);
    assert_eq!((pod.left_alone, pod.watched_only), (None, None));
}

#[tokio::test]
async fn container_is_found_by_the_name_of_its_pod() {
    let fake = one_job();
    fake.container("a2", "vae", "paceline-sidecar");
    let runtime = fake.runtime();
    for name in ["vae", "lab/vae", "lab/vae/train", &id("a1")] {
        let found = runtime.inspect(name).await.unwrap().unwrap();
        assert_eq!(found.id, id("a1"), "{name}");
    }
    for name in ["gru", "lab", "train", "deadbeef", &id("dead"), ""] {
        assert_eq!(runtime.inspect(name).await.unwrap(), None, "{name}");
    }
}

#[tokio::test]
async fn pods_opt_in_by_their_label_alone() {
    let fake = Fake::start();
    for (pod, labels, notes) in [
        ("a", OPTED_IN, &[][..]),
        ("b", &[("paceline.enable", "true"), ("team", "x")], &[]),
        ("c", &[("paceline.dev/enable", "yes")], &[]),
        ("d", &[], &[("paceline.dev/enable", "true")]),
        ("e", &[("paceline.enable", "true"), ("paceline.dev/enable", "false")], &[]),
    ] {
        fake.pod(pod, labels, notes);
        fake.container(&format!("{pod}1"), pod, "train");
    }
    let runtime = fake.runtime();
    assert_eq!(runtime.opted_in(&[]).await.unwrap(), [id("a1"), id("b1")]);
    assert_eq!(runtime.opted_in(&["team=x".to_owned()]).await.unwrap(), [id("b1")]);
    assert!(runtime.opted_in(&["team=y".to_owned()]).await.unwrap().is_empty());
}

#[tokio::test]
async fn sidecar_of_ours_is_not_the_job_of_its_pod() {
    let fake = Fake::start();
    fake.pod("vae", OPTED_IN, &[("paceline.dev/job", "mine")]);
    fake.container("a1", "vae", "train");
    fake.container("a2", "vae", "paceline-sidecar");
    let runtime = fake.runtime();
    assert_eq!(runtime.opted_in(&[]).await.unwrap(), [id("a1")]);
    let sidecars = runtime.list(&["paceline.sidecar-of=mine"]).await.unwrap();
    assert_eq!(sidecars.len(), 1);
    assert_eq!((sidecars[0].id.clone(), sidecars[0].stage), (id("a2"), Stage::Runs));
    let sidecar = runtime.inspect(&id("a2")).await.unwrap().unwrap();
    assert_eq!(sidecar.labels.get(labels::SIDECAR_OF).map(String::as_str), Some("mine"));
    assert!(sidecar.pod.unwrap().left_alone.unwrap().contains("sidecar of Paceline"));
}

#[tokio::test]
async fn pod_with_several_containers_is_left_alone() {
    let fake = one_job();
    fake.container("a2", "vae", "proxy");
    let runtime = fake.runtime();
    assert_eq!(runtime.opted_in(&[]).await.unwrap(), [id("a1"), id("a2")]);
    let found = runtime.inspect(&id("a1")).await.unwrap().unwrap();
    assert_eq!(
        found.pod.unwrap().left_alone.unwrap(),
        "its pod has several containers (proxy, train); name the one that trains by the annotation \
         paceline.dev/container"
    );
    // The other one ends.
    fake.change("a2", |proxy| proxy.state = ContainerState::Exited);
    let found = runtime.inspect(&id("a1")).await.unwrap().unwrap();
    assert_eq!(found.pod.unwrap().left_alone, None);
}

#[tokio::test]
async fn annotation_names_the_container_of_several() {
    let fake = Fake::start();
    fake.pod("vae", OPTED_IN, &[("paceline.dev/container", "train")]);
    fake.container("a1", "vae", "train");
    fake.container("a2", "vae", "proxy");
    fake.pod("gru", OPTED_IN, &[("paceline.dev/container", "trian")]);
    fake.container("b1", "gru", "train");
    let runtime = fake.runtime();
    // By their pods' ids.
    assert_eq!(runtime.opted_in(&[]).await.unwrap(), [id("b1"), id("a1")]);
    let pod = |id: String| {
        let runtime = runtime.clone();
        async move { runtime.inspect(&id).await.unwrap().unwrap().pod.unwrap().left_alone }
    };
    assert_eq!(pod(id("a1")).await, None);
    assert!(pod(id("a2")).await.unwrap().ends_with("names container train"));
    assert!(pod(id("b1")).await.unwrap().contains("names container trian, which does not run"));
}

#[tokio::test]
async fn sandboxed_containers_are_left_alone() {
    let fake = one_job();
    let runtime = fake.runtime();
    for (kind, handler, alone) in [
        ("io.containerd.runc.v2", "nvidia", false),
        ("", "", false),
        ("io.containerd.kata.v2", "", true),
        ("io.containerd.runsc.v1", "x", true),
        ("io.containerd.wasmtime.v1", "", true),
        ("", "kata-qemu", true),
    ] {
        fake.change("a1", |one| one.runtime = kind.to_owned());
        fake.handle("vae", handler);
        let pod = runtime.inspect(&id("a1")).await.unwrap().unwrap().pod.unwrap();
        assert_eq!(pod.left_alone.is_some(), alone, "{kind} {handler}: {:?}", pod.left_alone);
    }
}

#[tokio::test]
async fn ended_container_counts_as_removed() {
    let fake = one_job();
    let runtime = fake.runtime();
    assert!(!runtime.was_removed(&id("a1"), 0.0, 1.0).await.unwrap());
    assert!(runtime.was_removed(&id("a2"), 0.0, 1.0).await.unwrap());
    fake.change("a1", |one| one.state = ContainerState::Exited);
    assert!(runtime.was_removed(&id("a1"), 0.0, 1.0).await.unwrap());
    assert_eq!(runtime.inspect(&id("a1")).await.unwrap(), None);
    assert!(runtime.opted_in(&[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_the_kubelet_does_is_refused() {
    let fake = Fake::start();
    let runtime = fake.runtime();
    for refused in [
        runtime.stop(&id("a1"), 1).await,
        runtime.remove(&id("a1"), false).await,
        runtime.update(&id("a1"), Change::StaysEnded).await,
        runtime.update(&id("a1"), Change::Cpus("0".to_owned())).await,
    ] {
        let error = chain(refused.unwrap_err());
        assert!(error.contains("on a Kubernetes node, only limits are changed"), "{error}");
    }
    assert_eq!(fake.state.lock().unwrap().calls.len(), 0);
}

#[tokio::test]
async fn hostile_answer_is_a_short_error() {
    let fake = one_job();
    let runtime = fake.runtime();
    for (behavior, words) in [
        (Behavior::TooLong, "ContainerStatus: the answer is longer than 16 MiB"),
        (Behavior::Garbage, "ContainerStatus: the answer is not a CRI message"),
        (
            Behavior::Compressed,
            "ContainerStatus: the answer is not a CRI message: it is compressed",
        ),
        (Behavior::NoStatus, "it ends without a status"),
        (Behavior::NoJson, "cannot read what the runtime says of container a10000000000"),
    ] {
        fake.behave(behavior);
        let error = chain(runtime.inspect(&id("a1")).await.unwrap_err());
        assert!(error.contains(words) && error.len() < 200, "{error}");
    }
    fake.behave(Behavior::Honest);
    assert!(runtime.inspect(&id("a1")).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn call_that_hangs_is_given_up() {
    let fake = Fake::start();
    fake.behave(Behavior::Hangs);
    let error = chain(fake.runtime().opted_in(&[]).await.unwrap_err());
    assert!(error.contains("ListPodSandbox: no answer within 10 s"), "{error}");
}

#[tokio::test]
async fn long_list_is_read_whole() {
    let fake = Fake::start();
    fake.pod("vae", OPTED_IN, &[]);
    for number in 0..5000 {
        fake.container(&format!("{number:08x}"), "vae", "train");
    }
    assert_eq!(fake.runtime().opted_in(&[]).await.unwrap().len(), 5000);
}

#[tokio::test]
async fn restarted_runtime_is_connected_to_again() {
    let mut fake = Fake::start();
    fake.pod("vae", OPTED_IN, &[]);
    let runtime = fake.runtime();
    runtime.describe().await.unwrap();
    fake.serve();
    // The call that meets the restart may fail, but no later one.
    drop(runtime.describe().await);
    runtime.describe().await.unwrap();
}

#[tokio::test]
async fn missing_socket_is_named() {
    let cri = Cri::at("unix:///nowhere/runtime.sock", Path::new("/proc")).unwrap();
    let error = chain(Runtime::from(cri).describe().await.unwrap_err());
    assert!(error.starts_with("cannot connect to /nowhere/runtime.sock: No such file"), "{error}");
    let error = Cri::at("tcp://1.2.3.4", Path::new("/proc")).unwrap_err().to_string();
    assert!(error.starts_with(r#"invalid CRI address "tcp://1.2.3.4": expected unix://PATH"#));
}

/// The ids of the first event's containers that `follow` reports; `happen` causes it, and is repeated.
async fn first_events(fake: &Fake, count: usize, happen: impl Fn()) -> Vec<String> {
    let (sender, mut seen) = tokio::sync::mpsc::channel(64);
    let runtime = fake.runtime();
    let follow = runtime.follow(|event| {
        assert!(Labels::opted_in(&event.labels));
        drop(sender.try_send(event.id));
    });
    let collect = async {
        let mut ids = Vec::new();
        while ids.len() < count {
            happen();
            let next = tokio::time::timeout(Duration::from_millis(100), seen.recv());
            ids.extend(next.await.ok().flatten());
        }
        ids
    };
    tokio::select! {
        () = follow => panic!("the events ended"),
        ids = collect => ids,
    }
}

#[tokio::test]
async fn event_touches_all_containers_of_its_pod() {
    let fake = one_job();
    fake.container("a2", "vae", "proxy");
    let sent = std::cell::Cell::new(false);
    let ids = first_events(&fake, 2, || {
        if !sent.get() {
            sent.set(fake.event("a2") > 0);
        }
    })
    .await;
    assert_eq!(ids, [id("a1"), id("a2")]);
}

#[tokio::test]
async fn containerd_1_is_polled_and_its_events_left() {
    let fake = Fake::start();
    fake.state.lock().unwrap().version = "1.7.24".to_owned();
    fake.pod("vae", OPTED_IN, &[]);
    fake.container("a1", "vae", "train");
    // It begins when the list was read.
    let listed = || fake.state.lock().unwrap().calls.contains_key("ListContainers");
    let ids = first_events(&fake, 1, || {
        if listed() {
            fake.change("a1", |one| one.state = ContainerState::Exited);
        }
    })
    .await;
    assert_eq!(ids, [id("a1")]);
    assert!(!fake.state.lock().unwrap().calls.contains_key("GetContainerEvents"));
}
