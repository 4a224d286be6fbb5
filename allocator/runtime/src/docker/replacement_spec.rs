//! The specification of a container that replaces another one. Pure.

use bollard::models::{
    ContainerConfig, ContainerCreateBody, ContainerInspectResponse, EndpointSettings, HostConfig,
    Mount, MountPoint, MountType, NetworkingConfig,
};

use crate::{HostCpu, Successor};

/// The length of the id's beginning that an engine uses as the default host name.
const SHORT: usize = 12;

/// The specification of a container, and the networks that it joins after its creation: an engine
/// creates it on one network only.
pub(super) struct ReplacementSpec {
    pub(super) body: ContainerCreateBody,
    pub(super) networks: Vec<(String, EndpointSettings)>,
}

/// Image, command, environment, labels, networks and mounts are those of `source`, whose id is `id`.
/// CPUs and limits are those of `copy`.
pub(super) fn build(
    source: ContainerInspectResponse,
    id: &str,
    copy: &Successor,
) -> ReplacementSpec {
    let config = source.config.unwrap_or_default();
    let host = source.host_config.unwrap_or_default();
    let mounts = source.mounts.unwrap_or_default();
    let networks = source.network_settings.and_then(|settings| settings.networks);
    let networks = networks.unwrap_or_default().into_iter();
    let (own, others): (Vec<_>, Vec<_>) = networks.partition(|network| is_first(&host, network));
    let join = |(name, endpoint)| (name, joined(endpoint, id));
    let own = own.into_iter().map(join).collect();
    let networks = others.into_iter().map(join).collect();
    let mut labels = config.labels.unwrap_or_default();
    let (label, value) = copy.label.clone();
    labels.insert(label, value);
    let own_id = id.get(..SHORT);
    let ContainerConfig { hostname, domainname, user, exposed_ports, tty, open_stdin, .. } = config;
    let body = ContainerCreateBody {
        // The engine's default host name comes from the container's id.
        hostname: hostname.filter(|hostname| Some(hostname.as_str()) != own_id),
        domainname,
        user,
        exposed_ports,
        tty,
        open_stdin,
        env: config.env,
        cmd: config.cmd,
        healthcheck: config.healthcheck,
        // The image's id at the start of the job: its tag may mean another image by now.
        image: source.image.or(config.image),
        working_dir: config.working_dir,
        entrypoint: config.entrypoint,
        network_disabled: config.network_disabled,
        labels: Some(labels),
        stop_signal: config.stop_signal,
        stop_timeout: config.stop_timeout,
        host_config: Some(placed(host, &mounts, copy)),
        networking_config: Some(NetworkingConfig { endpoints_config: Some(own) }),
        ..ContainerCreateBody::default()
    };
    ReplacementSpec { body, networks }
}

/// The settings of the host on the target.
fn placed(host: HostConfig, mounts: &[MountPoint], copy: &Successor) -> HostConfig {
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
    let HostCpu { nano_cpus, cpu_quota, cpu_period, cpu_shares } = copy.limits;
    HostConfig {
        cpuset_cpus: Some(copy.cpus.clone()),
        binds: (!binds.is_empty()).then_some(binds),
        mounts: host.mounts.map(|mounts| mounts.into_iter().map(by_name).collect()),
        nano_cpus: Some(nano_cpus),
        cpu_quota: Some(cpu_quota),
        cpu_period: Some(cpu_period),
        cpu_shares: Some(cpu_shares),
        ..host
    }
}

/// Whether the settings name this mount.
fn is_named(host: &HostConfig, mount: &MountPoint) -> bool {
    let at = mount.destination.as_deref();
    let binds = host.binds.iter().flatten();
    let by_bind = binds.filter_map(|bind| bind.split(':').nth(1)).any(|target| Some(target) == at);
    by_bind || host.mounts.iter().flatten().any(|one| one.target.as_deref() == at)
}

/// The bind of an anonymous volume of the container, which its successor mounts: it holds the job's
/// data.
fn bind(mount: &MountPoint) -> Option<String> {
    let (name, at) = (mount.name.as_deref()?, mount.destination.as_deref()?);
    let mode = if mount.rw == Some(false) { ":ro" } else { "" };
    (mount.typ.as_deref() == Some("volume")).then(|| format!("{name}:{at}{mode}"))
}

/// Whether the container is created on this network, by its name or its id.
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

/// How the successor joins a network: with the same aliases and an address of its own.
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
    use serde_json::{Value, json};

    use super::*;

    const ID: &str = "0123456789abcdef";
    const LABEL: &str = "paceline.moved-from";

    fn copy() -> Successor {
        Successor {
            name: "vae".to_owned(),
            cpus: "1".to_owned(),
            limits: HostCpu { cpu_shares: 512, ..HostCpu::default() },
            label: (LABEL.to_owned(), ID.to_owned()),
        }
    }

    fn spec(host: &Value, mounts: &Value) -> ReplacementSpec {
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
        build(serde_json::from_value(described).unwrap(), ID, &copy())
    }

    #[test]
    fn successor_differs_only_in_cpus_limits_and_label() {
        let host = json!({
            "CpusetCpus": "0", "NanoCpus": 500_000_000, "AutoRemove": true, "NetworkMode": "net",
            "Memory": 1_000_000,
        });
        let ReplacementSpec { body, networks } = spec(&host, &json!([]));
        assert_eq!(networks, [("other".to_owned(), EndpointSettings::default())]);
        assert_eq!((body.image.as_deref(), body.hostname), (Some("sha256:1"), None));
        assert_eq!(body.cmd.unwrap(), ["--resume"]);
        let labels = body.labels.unwrap();
        assert_eq!((labels["paceline.enable"].as_str(), labels[LABEL].as_str()), ("true", ID));
        let host = body.host_config.unwrap();
        assert_eq!((host.cpuset_cpus.as_deref(), host.nano_cpus), (Some("1"), Some(0)));
        assert_eq!((host.cpu_shares, host.auto_remove), (Some(512), Some(true)));
        assert_eq!(host.memory, Some(1_000_000), "it is the owner's limit");
        let networks = body.networking_config.unwrap().endpoints_config.unwrap();
        let net = &networks["net"];
        assert_eq!(
            (net.aliases.as_deref(), &net.ip_address),
            (Some(&["job".to_owned()][..]), &None)
        );
    }

    #[test]
    fn volumes_are_kept_with_or_without_a_name() {
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
        let host = spec(&host, &mounts).body.host_config.unwrap();
        assert_eq!(host.binds.unwrap(), ["/data:/data:ro", "named:/named", "abc:/anonymous"]);
        let sources = host.mounts.unwrap().into_iter().map(|mount| mount.source.unwrap());
        assert_eq!(sources.collect::<Vec<_>>(), ["given", "xyz"]);
    }
}
