//! The container that takes the place of another one. Pure.

use bollard::models::{
    ContainerConfig, ContainerCreateBody, ContainerInspectResponse, EndpointSettings, HostConfig,
    Mount, MountPoint, MountType, NetworkingConfig,
};

use super::MOVED_FROM;
use crate::migrate::Move;
use crate::observe::container::HostCpu;

/// How much of its id an engine calls a container's host by.
const SHORT: usize = 12;

/// How a container is made, and which networks it joins then: an engine makes it on one alone.
pub(super) struct Twin {
    pub(super) body: ContainerCreateBody,
    pub(super) networks: Vec<(String, EndpointSettings)>,
}

/// The same image, command, environment, labels, networks and mounts as `source`, on the CPUs of the
/// plan's target, with the limits that it had before anybody wrote some to it.
pub(super) fn of(source: ContainerInspectResponse, plan: &Move) -> Twin {
    let config = source.config.unwrap_or_default();
    let host = source.host_config.unwrap_or_default();
    let mounts = source.mounts.unwrap_or_default();
    let networks = source.network_settings.and_then(|settings| settings.networks);
    let networks = networks.unwrap_or_default().into_iter();
    let (own, others): (Vec<_>, Vec<_>) = networks.partition(|network| is_first(&host, network));
    let join = |(name, endpoint)| (name, joined(endpoint, &plan.source));
    let own = own.into_iter().map(join).collect();
    let networks = others.into_iter().map(join).collect();
    let mut labels = config.labels.unwrap_or_default();
    labels.insert(MOVED_FROM.to_owned(), plan.source.clone());
    let own_id = plan.source.get(..SHORT);
    let ContainerConfig { hostname, domainname, user, exposed_ports, tty, open_stdin, .. } = config;
    let body = ContainerCreateBody {
        // The engine's own name for a host is the container's id.
        hostname: hostname.filter(|hostname| Some(hostname.as_str()) != own_id),
        domainname,
        user,
        exposed_ports,
        tty,
        open_stdin,
        env: config.env,
        cmd: config.cmd,
        healthcheck: config.healthcheck,
        // What a tag meant when the job began, whatever it means by now.
        image: source.image.or(config.image),
        working_dir: config.working_dir,
        entrypoint: config.entrypoint,
        network_disabled: config.network_disabled,
        labels: Some(labels),
        stop_signal: config.stop_signal,
        stop_timeout: config.stop_timeout,
        host_config: Some(placed(host, &mounts, plan)),
        networking_config: Some(NetworkingConfig { endpoints_config: Some(own) }),
        ..ContainerCreateBody::default()
    };
    Twin { body, networks }
}

/// The same settings on the target.
fn placed(host: HostConfig, mounts: &[MountPoint], plan: &Move) -> HostConfig {
    let mut binds = host.binds.clone().unwrap_or_default();
    binds.extend(mounts.iter().filter(|mount| !is_named(&host, mount)).filter_map(bind));
    let made_at =
        |target: Option<&str>| mounts.iter().find(|one| one.destination.as_deref() == target);
    let by_name = |mut mount: Mount| {
        let unnamed = mount.source.is_none() && mount.typ == Some(MountType::VOLUME);
        if let Some(made) = made_at(mount.target.as_deref()).filter(|_| unnamed) {
            mount.source.clone_from(&made.name);
        }
        mount
    };
    let HostCpu { nano_cpus, cpu_quota, cpu_period, cpu_shares } = plan.limits;
    HostConfig {
        cpuset_cpus: Some(plan.place.clone()),
        binds: (!binds.is_empty()).then_some(binds),
        mounts: host.mounts.map(|mounts| mounts.into_iter().map(by_name).collect()),
        nano_cpus: Some(nano_cpus),
        cpu_quota: Some(cpu_quota),
        cpu_period: Some(cpu_period),
        cpu_shares: Some(cpu_shares),
        ..host
    }
}

/// Whether the settings speak of what is mounted there.
fn is_named(host: &HostConfig, mount: &MountPoint) -> bool {
    let at = mount.destination.as_deref();
    let binds = host.binds.iter().flatten();
    let by_bind = binds.filter_map(|bind| bind.split(':').nth(1)).any(|target| Some(target) == at);
    by_bind || host.mounts.iter().flatten().any(|one| one.target.as_deref() == at)
}

/// A volume that was made for the container, to be mounted by its successor: what lies there is the
/// job's.
fn bind(mount: &MountPoint) -> Option<String> {
    let (name, at) = (mount.name.as_deref()?, mount.destination.as_deref()?);
    let mode = if mount.rw == Some(false) { ":ro" } else { "" };
    (mount.typ.as_deref() == Some("volume")).then(|| format!("{name}:{at}{mode}"))
}

/// Whether this is the network that the container is made on, by its name or its id.
fn is_first(host: &HostConfig, (name, endpoint): &(String, EndpointSettings)) -> bool {
    match host.network_mode.as_deref().unwrap_or_default() {
        "" | "default" => name == "bridge",
        mode if name == mode => true,
        mode => {
            let id = endpoint.network_id.as_deref().unwrap_or_default();
            mode.len() >= SHORT && id.starts_with(mode)
        }
    }
}

/// How a network is joined again: by the same names, with an address of its own.
fn joined(endpoint: EndpointSettings, source: &str) -> EndpointSettings {
    let own = |alias: &String| !source.starts_with(alias.as_str());
    let aliases = endpoint.aliases.map(|aliases| aliases.into_iter().filter(own).collect());
    EndpointSettings {
        aliases,
        links: endpoint.links,
        driver_opts: endpoint.driver_opts,
        ..EndpointSettings::default()
    }
}

#[cfg(test)]
mod tests {
    use paceline_policy::decision::Cause;
    use serde_json::{Value, json};

    use super::*;
    use crate::migrate::procedure::Procedure;

    const ID: &str = "0123456789abcdef";

    fn plan() -> Move {
        Move {
            job: "vae".to_owned(),
            from: "a".to_owned(),
            to: "b".to_owned(),
            place: "1".to_owned(),
            reason: Cause::Converged,
            source: ID.to_owned(),
            name: "vae".to_owned(),
            limits: HostCpu { cpu_shares: 512, ..HostCpu::default() },
            saved: None,
            course: Procedure::default(),
        }
    }

    fn twin(host: &Value, mounts: &Value) -> Twin {
        let described = json!({
            "Id": ID, "Name": "/vae", "Image": "sha256:1",
            "Config": {
                "Hostname": "0123456789ab", "Image": "vae:latest", "Cmd": ["--resume"],
                "Env": ["A=b"], "Labels": {"paceline.enable": "true"},
            },
            "HostConfig": host, "Mounts": mounts,
            "NetworkSettings": {"Networks": {
                "net": {"Aliases": ["job", "0123456789ab"], "IPAddress": "172.18.0.2"},
                "other": {},
            }},
        });
        of(serde_json::from_value(described).unwrap(), &plan())
    }

    #[test]
    fn a_successor_is_the_same_but_for_its_cpus_and_what_was_written_to_the_other_one() {
        let host = json!({
            "CpusetCpus": "0", "NanoCpus": 500_000_000, "AutoRemove": true, "NetworkMode": "net",
            "Memory": 1_000_000,
        });
        let Twin { body: twin, networks } = twin(&host, &json!([]));
        assert_eq!(networks, [("other".to_owned(), EndpointSettings::default())]);
        assert_eq!((twin.image.as_deref(), twin.hostname), (Some("sha256:1"), None));
        assert_eq!(twin.cmd.unwrap(), ["--resume"]);
        let labels = twin.labels.unwrap();
        assert_eq!((labels["paceline.enable"].as_str(), labels[MOVED_FROM].as_str()), ("true", ID));
        let host = twin.host_config.unwrap();
        assert_eq!((host.cpuset_cpus.as_deref(), host.nano_cpus), (Some("1"), Some(0)));
        assert_eq!((host.cpu_shares, host.auto_remove), (Some(512), Some(true)));
        assert_eq!(host.memory, Some(1_000_000), "no policy limits it: it is the owner's");
        let networks = twin.networking_config.unwrap().endpoints_config.unwrap();
        let net = &networks["net"];
        assert_eq!(
            (net.aliases.as_deref(), &net.ip_address),
            (Some(&["job".to_owned()][..]), &None)
        );
    }

    #[test]
    fn volumes_go_along_with_or_without_a_name() {
        let host = json!({
            "Binds": ["/data:/data:ro", "named:/named"],
            "Mounts": [
                {"Type": "volume", "Source": "given", "Target": "/given"},
                {"Type": "volume", "Target": "/unnamed"},
            ],
        });
        let volume = |name: &str, at: &str| json!({"Type": "volume", "Name": name, "Destination": at, "RW": true});
        let mounts = json!([
            {"Type": "bind", "Source": "/data", "Destination": "/data", "RW": false},
            volume("named", "/named"), volume("given", "/given"),
            volume("xyz", "/unnamed"), volume("abc", "/anonymous"),
        ]);
        let host = twin(&host, &mounts).body.host_config.unwrap();
        assert_eq!(host.binds.unwrap(), ["/data:/data:ro", "named:/named", "abc:/anonymous"]);
        let sources = host.mounts.unwrap().into_iter().map(|mount| mount.source.unwrap());
        assert_eq!(sources.collect::<Vec<_>>(), ["given", "xyz"]);
    }
}
