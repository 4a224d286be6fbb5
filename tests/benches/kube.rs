//! Measures the allocator on a Kubernetes node: what it costs beside 60 pods, and the time from a job's
//! loss becoming acceptable to its new quota, beside a bare update by CRI in the same run.
//! `make test-kube PART=cost` runs it on the node `n1`. Fails when a goal is missed.
//!
//! The arguments are the address of the node's CRI socket, and the program `kubectl`.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use paceline_api::clock::Clock;
use paceline_api::labels::Endpoint;
use paceline_cgroup::{Cgroup, Quota};
use paceline_node::endpoint::{self, Reach};
use paceline_runtime::cri::Cri;
use paceline_runtime::{Change, Container, Runtime};
use paceline_system_tests::{Allocator, BUSY, Cost, quantiles, quota_change, until};
use serde_json::{Value, json};

/// The pods that report, and do nothing else.
const PODS: u32 = 60;
/// Seconds in which the cost is measured, after those in which the first decisions are made.
const SECONDS: u64 = 60;
const SETTLE: Duration = Duration::from_secs(15);
/// Percent of one core that the allocator may use.
const MAX_CPU: f64 = 3.0;
/// Jobs whose reaction is measured, unless the variable `SAMPLES` is set.
const SAMPLES: usize = 30;
/// What the reaction's 99th percentile may be, in those of a bare update.
const MAX_RATIO: f64 = 3.0;
/// The machine's `/proc`.
const PROC: &str = "/proc";

/// The node under test.
struct Node {
    address: String,
    kubectl: String,
    runtime: Runtime,
}

/// A pod of one container.
struct Pod<'a> {
    name: &'a str,
    /// Whether it opts in.
    managed: bool,
    args: &'a [&'a str],
    env: &'a [(&'a str, &'a str)],
}

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with('-'));
    let (address, kubectl) = words.next().zip(words.next()).context("SOCKET KUBECTL")?;
    let runtime = Runtime::from(Cri::at(&address, Path::new(PROC))?);
    let node = Node { address, kubectl, runtime };
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    threads.block_on(async {
        let reacts = node.reaction().await?;
        let costs = node.cost().await?;
        anyhow::ensure!(reacts && costs, "a goal is missed");
        Ok(())
    })
}

impl Node {
    /// Prints the CPU use beside many pods. Returns whether it is within its bound.
    async fn cost(&self) -> anyhow::Result<bool> {
        let names: Vec<String> = (0..PODS).map(|number| format!("pod-{number}")).collect();
        let args = ["--sleep", "100000"];
        let pods = names.iter().map(|name| Pod { name, managed: true, args: &args, env: &[] });
        self.apply(pods)?;
        for name in &names {
            self.running(name).await?;
        }
        let folder = tempfile::tempdir()?;
        let allocator = self.allocator(folder.path(), &["--policy", "flowcon"])?;
        let appeared = || allocator.said().matches("job appeared").count();
        let all = names.len();
        until("every pod is managed", || async { Ok((appeared() >= all).then_some(())) }).await?;
        tokio::time::sleep(SETTLE).await;
        let (clock, before) = (Clock::start(), Cost::for_process(allocator.id()?)?);
        tokio::time::sleep(Duration::from_secs(SECONDS)).await;
        let (lasted, after) = (clock.now().seconds(), Cost::for_process(allocator.id()?)?);
        allocator.end().await?;
        self.delete(&names)?;
        let cpu = (after.cpu_seconds - before.cpu_seconds) / lasted * 100.0;
        println!(
            "{PODS} pods at 1 Hz: {cpu:.2} % of a core (at most {MAX_CPU} %), {:.1} MiB",
            after.resident
        );
        Ok(cpu <= MAX_CPU)
    }

    /// Prints the time of a reaction, beside that of a bare update. Returns whether it is within its bound.
    async fn reaction(&self) -> anyhow::Result<bool> {
        let folder = tempfile::tempdir()?;
        // TRADL cuts a job once its loss is acceptable. With alpha 0 it never lifts all limits, as it would
        // between two jobs, when the node is briefly idle.
        let policy = ["--policy", "tradl", "--param", "alpha=0", "--enforcement", "quota"];
        let allocator = self.allocator(folder.path(), &policy)?;
        let never = Pod {
            name: "never",
            managed: true,
            args: &["--burners", "1"],
            env: &[("PACELINE_ACCEPTABLE", "0")],
        };
        self.apply([never].into_iter())?;
        allocator.says(&["job appeared", "never"]).await?;
        let asked = std::env::var("SAMPLES").ok().and_then(|samples| samples.parse().ok());
        let (mut reactions, mut updates) = (Vec::new(), Vec::new());
        for _ in 0..asked.unwrap_or(SAMPLES) {
            reactions.push(self.one_reaction().await.with_context(|| allocator.said())?);
            updates.push(self.bare_update().await?);
        }
        allocator.end().await?;
        self.delete(&["never".to_owned()])?;
        let ([half, most], [bare_half, bare_most]) = (quantiles(reactions), quantiles(updates));
        let ratio = most / bare_most;
        println!(
            "by CRI: reaction p50 {half:.1} ms, p99 {most:.1} ms; bare update p50 {bare_half:.1} ms, p99 \
             {bare_most:.1} ms; ratio of p99 {ratio:.2} (at most {MAX_RATIO})"
        );
        Ok(ratio <= MAX_RATIO)
    }

    /// From the moment at which a job's loss is acceptable to its new quota, in milliseconds.
    async fn one_reaction(&self) -> anyhow::Result<f64> {
        let name = "crossing";
        let crossing = Pod {
            name,
            managed: true,
            args: &BUSY,
            // Set by the environment, so that the endpoint reports when it was reached.
            env: &[("PACELINE_ACCEPTABLE", "1")],
        };
        self.apply([crossing].into_iter())?;
        let container = self.running(name).await?;
        let cgroup = cgroup_of(&container)?;
        let before = cgroup.quota()?;
        let changed = quota_change(cgroup, before).await?;
        let routes = endpoint::routes(Path::new(PROC), &container, &Endpoint::Port(7223));
        let reach = Reach::new(Path::new(PROC), &container);
        let (_, progress) = endpoint::read(&reach, &routes).await?;
        let reached = progress.reached.acceptable_at.context("cut before it was acceptable")?;
        self.delete(&[name.to_owned()])?;
        Ok((changed - reached) * 1000.0)
    }

    /// From one request by CRI, for a pod that the allocator leaves alone, to the quota in the kernel, in
    /// milliseconds.
    async fn bare_update(&self) -> anyhow::Result<f64> {
        let name = "bare";
        self.apply([Pod { name, managed: false, args: &BUSY, env: &[] }].into_iter())?;
        let container = self.running(name).await?;
        let cgroup = cgroup_of(&container)?;
        let half = Quota { quota: Some(50_000), period: 100_000 };
        let clock = Clock::start();
        self.runtime.update(&container.id, Change::CpuQuota(50_000)).await?;
        until("the quota is there", || async { Ok((cgroup.quota()? == half).then_some(())) })
            .await?;
        let taken = clock.now().seconds();
        self.delete(&[name.to_owned()])?;
        Ok(taken * 1000.0)
    }

    fn allocator(&self, folder: &Path, words: &[&str]) -> anyhow::Result<Allocator> {
        let mut command = Allocator::command(&["run", "--runtime", "cri", "--cri", &self.address])?;
        command.args(["--listen", "none"]).args(words);
        command.arg("--state-dir").arg(folder.join("state"));
        command.arg("--control").arg(folder.join("control.sock"));
        Allocator::spawn(command)
    }

    /// Waits until a pod's container runs.
    async fn running(&self, name: &str) -> anyhow::Result<Container> {
        until(&format!("{name} runs"), || async {
            let found = self.runtime.inspect(name).await.ok().flatten();
            Ok(found.filter(|container| container.pid.is_some()))
        })
        .await
    }

    fn apply<'a>(&self, pods: impl Iterator<Item = Pod<'a>>) -> anyhow::Result<()> {
        let items: Vec<Value> = pods.map(|pod| pod.manifest()).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        let mut child = Command::new(&self.kubectl)
            .args(["apply", "--validate=false", "-f", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        child.stdin.take().context("it is piped")?.write_all(list.to_string().as_bytes())?;
        anyhow::ensure!(child.wait()?.success(), "kubectl apply failed");
        Ok(())
    }

    /// Deletes pods, and waits until they are gone.
    fn delete(&self, names: &[String]) -> anyhow::Result<()> {
        let mut command = Command::new(&self.kubectl);
        command.args(["delete", "pod", "--now"]).args(names).stdout(Stdio::null());
        anyhow::ensure!(command.status()?.success(), "kubectl delete failed");
        Ok(())
    }
}

impl Pod<'_> {
    fn manifest(&self) -> Value {
        let labels = if self.managed { json!({"paceline.dev/enable": "true"}) } else { json!({}) };
        let command = [&["/bin/toy-job"], self.args].concat();
        let env: Vec<Value> =
            self.env.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self.name, "labels": labels},
            "spec": {
                "nodeName": "n1",
                "terminationGracePeriodSeconds": 0,
                "containers": [{
                    "name": "train",
                    "image": "bed/job:1",
                    "imagePullPolicy": "Never",
                    "command": command,
                    "env": env,
                }],
            },
        })
    }
}

fn cgroup_of(container: &Container) -> anyhow::Result<Cgroup> {
    Ok(Cgroup::for_process(Path::new(PROC), container.pid.context("it runs")?)?)
}
