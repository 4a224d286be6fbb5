use proptest::prelude::*;

use super::*;

const USUAL: HostCpu = HostCpu { nano_cpus: 0, cpu_quota: -1, cpu_period: 100_000, cpu_shares: 2 };

fn info(group: &str) -> Info {
    let text = serde_json::json!({"pid": 7, "runtimeSpec": {"linux": {"cgroupsPath": group}}});
    Info::parse(&text.to_string()).unwrap()
}

#[test]
fn class_of_a_pod_is_read_from_its_control_group() {
    for (path, expected) in [
        ("/kubepods/burstable/pod12-34/56ab", Some(Class::Other)),
        ("/node/kubepods/besteffort/pod12-34/56ab", Some(Class::Other)),
        ("/kubepods/pod12-34/56ab", Some(Class::Guaranteed)),
        ("kubepods-burstable-pod12_34.slice:cri-containerd:56ab", Some(Class::Other)),
        ("kubepods-besteffort-pod12_34.slice:crio:56ab", Some(Class::Other)),
        ("kubepods-pod12_34.slice:cri-containerd:56ab", Some(Class::Guaranteed)),
        ("kubelet-kubepods-pod12_34.slice:cri-containerd:56ab", Some(Class::Guaranteed)),
        ("/k8s.io/56ab", None),
        ("", None),
    ] {
        assert_eq!(class(path), expected, "{path}");
    }
}

#[test]
fn guaranteed_pod_is_watched_only() {
    let whole = HostCpu { cpu_quota: 100_000, cpu_shares: 1024, ..USUAL };
    let why = watched_only(whole, 1.0, &info("/kubepods/pod1/2"), "").unwrap();
    assert!(why.starts_with("its pod is guaranteed: request and limit are equal; it is watched"));
    let why = watched_only(whole, 1.0, &info("/kubepods/pod1/2"), "3").unwrap();
    assert!(why.contains(", and it may have the CPUs 3 for itself;"), "{why}");
    assert_eq!(watched_only(whole, 1.0, &info("/kubepods/burstable/pod1/2"), ""), None);
    // Without a path the numbers decide.
    assert!(watched_only(whole, 1.0, &Info::default(), "").is_some());
    assert_eq!(watched_only(whole, 0.5, &Info::default(), ""), None);
    assert_eq!(watched_only(USUAL, 0.0, &Info::default(), ""), None);
}

#[test]
fn request_is_what_the_weight_stands_for() {
    for (thousandths, shares) in [(0, 0), (0, 2), (3, 3), (100, 102), (200, 204), (333, 340)] {
        let request = requested(HostCpu { cpu_shares: shares, ..USUAL });
        assert!((request - f64::from(thousandths) / 1000.0).abs() < 1e-9, "{shares}: {request}");
    }
    assert!((requested(HostCpu { cpu_shares: 2048, ..USUAL }) - 2.0).abs() < 1e-9);
    assert!(requested(HostCpu { cpu_shares: i64::MAX, ..USUAL }).is_finite());
}

#[test]
fn limits_of_an_older_runtime_are_read_from_its_specification() {
    let text = serde_json::json!({"runtimeSpec": {"linux": {"resources": {"cpu":
        {"shares": 512, "quota": 50_000, "period": 100_000, "cpus": "0-1"}}}}});
    let info = Info::parse(&text.to_string()).unwrap();
    let (host, cpus) = limits(&ContainerStatus::default(), &info);
    assert_eq!(host, HostCpu { cpu_quota: 50_000, cpu_shares: 512, ..USUAL });
    assert_eq!(cpus, "0-1");
    let (host, _) = limits(&ContainerStatus::default(), &Info::default());
    assert_eq!(host, HostCpu { cpu_shares: 0, ..USUAL });
}

#[test]
fn first_process_is_never_the_machines() {
    for (text, pid) in [
        (r#"{"pid": 4711}"#, Some(4711)),
        (r#"{"pid": 1}"#, None),
        (r#"{"pid": 0}"#, None),
        (r#"{"pid": -7}"#, None),
        (r#"{"pid": 99999999999}"#, None),
        ("{}", None),
    ] {
        assert_eq!(Info::parse(text).unwrap().pid(), pid, "{text}");
    }
    assert!(Info::parse(&"[".repeat(100_000)).is_err());
    assert!(Info::parse(&" ".repeat(MAX_INFO + 1)).unwrap_err().contains("4 MiB"));
}

proptest! {
    #[test]
    fn no_description_makes_the_reader_panic(
        text in "\\PC*", shares: i64, quota: i64, period: i64, started: i64, name in "\\PC{0,80}",
    ) {
        drop(Info::parse(&text));
        let cpu = proto::LinuxContainerResources {
            cpu_period: period, cpu_quota: quota, cpu_shares: shares, cpuset_cpus: text.clone(),
        };
        let status = ContainerStatus {
            id: name.clone(),
            metadata: Some(proto::ContainerMetadata { name: name.clone() }),
            started_at: started,
            resources: Some(proto::ContainerResources { linux: Some(cpu) }),
            ..ContainerStatus::default()
        };
        let pod = PodSandboxStatus {
            annotations: [(labels::POD_CONTAINER.to_owned(), text)].into(),
            ..PodSandboxStatus::default()
        };
        let container = container(&status, &info(&name), &pod, &[]);
        prop_assert!(container.pod.unwrap().request >= 0.0);
        prop_assert!(container.host_config.cpu_period > 0);
    }
}
