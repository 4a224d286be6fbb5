//! Working and broken endpoints.

use std::sync::Arc;

use bollard::models::HostConfig;
use paceline_system_tests::{Allocator, Job, TestEnv, until};

use crate::flowcon::{QUICK, ensure_unlimited, flat, flat_and_growing, growing, until_cut};

pub(crate) async fn container_without_reports_is_named_and_left_alone(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let kinds = [("mute", "nothing"), ("dead", "silence"), ("babbling", "garbage")];
    let mut left_alone = Vec::new();
    for (name, answer) in kinds {
        let args = vec!["--answer", answer, "--work", "10000000"];
        left_alone.push(env.start(Job { name, args, ..Job::default() }).await?);
    }
    let labels = vec![("paceline.min-cpus", "much")];
    left_alone.push(env.start(Job { name: "mislabelled", labels, ..Job::default() }).await?);
    let flat = flat_and_growing(&env).await?;
    let allocator = Allocator::run(&env, &QUICK)?;
    for (name, reason) in [
        ("mute", "no answer from port 7223"),
        ("dead", "no answer from port 7223"),
        ("babbling", "does not speak HTTP"),
        ("mislabelled", r#"invalid label paceline.min-cpus="much": expected a number above 0"#),
    ] {
        allocator.says(&["WARN", &env.name(name), "is not managed", reason]).await?;
    }
    // The others are managed as if these did not exist: two jobs, so the flat one gets a quarter.
    until_cut(&env, &flat).await?;
    for name in left_alone {
        let limits = env.limits(&name).await?;
        let quota = limits.kernel.and_then(|quota| quota.quota);
        anyhow::ensure!(limits.host.nano_cpus == 0 && quota.is_none(), "{name}: {limits:?}");
    }
    allocator.end().await
}

pub(crate) async fn a_unix_socket_is_read_through_the_containers_root(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let by_socket = |job: Job| Job {
        labels: vec![("paceline.endpoint", "unix:/job.sock")],
        env: vec!["PACELINE_LISTEN=unix:/job.sock".to_owned()],
        ..job
    };
    let flat = env.start(by_socket(flat())).await?;
    env.start(by_socket(growing())).await?;
    let allocator = Allocator::run(&env, &QUICK)?;
    until_cut(&env, &flat).await?;
    allocator.end().await?;
    ensure_unlimited(&env, &flat).await
}

pub(crate) async fn a_container_that_did_not_opt_in_is_never_touched(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let stranger = env.start(Job { name: "stranger", stranger: true, ..Job::default() }).await?;
    let flat = flat_and_growing(&env).await?;
    let before = env.limits(&stranger).await?;
    let allocator = Allocator::run(&env, &QUICK)?;
    until_cut(&env, &flat).await?;
    anyhow::ensure!(env.limits(&stranger).await? == before, "it was touched");
    anyhow::ensure!(!allocator.said().contains("stranger"), "{}", allocator.said());
    allocator.end().await?;
    anyhow::ensure!(env.limits(&stranger).await? == before, "it was touched");
    Ok(())
}

pub(crate) async fn check_reports_problems(env: Arc<TestEnv>) -> anyhow::Result<()> {
    let good = env.start(growing()).await?;
    let labels = vec![("paceline.min-cpus", "100000")];
    let mute = Job { name: "mute", args: vec!["--answer", "nothing"], labels, ..Job::default() };
    let mute = env.start(mute).await?;
    let stranger = env.start(Job { name: "stranger", stranger: true, ..Job::default() }).await?;
    let check = |name: String| async move {
        let output = Allocator::command(&["check", &name])?.output().await?;
        let said = String::from_utf8(output.stdout)?;
        anyhow::Ok((output.status.code(), said))
    };
    let said = until("the good job answers", || async {
        let (code, said) = check(good.clone()).await?;
        Ok((code == Some(0)).then_some(said))
    })
    .await?;
    for word in ["opted in", "cgroup", "limited by", "answers", "job toy"] {
        anyhow::ensure!(said.contains(word), "{word} is missing: {said}");
    }
    for words in [&["check", &good][..], &["check", "--json", &good]] {
        // A job on a busy machine may answer late once.
        until("the check ends well without a reader", || async {
            let unread = Allocator::unread(words).await?;
            anyhow::ensure!(unread.stderr.is_empty(), "{unread:?}");
            Ok(unread.status.success().then_some(()))
        })
        .await?;
    }
    let (code, said) = check(mute).await?;
    anyhow::ensure!(code == Some(1) && said.contains("WRONG"), "{said}");
    let beyond = "paceline.min-cpus=100000: more than the machine's";
    anyhow::ensure!(said.contains(beyond), "{said}");
    let (code, said) = check(stranger).await?;
    anyhow::ensure!(code == Some(1) && said.contains("paceline.enable=true is missing"), "{said}");
    let (code, _) = check("no-such-container".to_owned()).await?;
    anyhow::ensure!(code == Some(2), "{code:?}");
    Ok(())
}

pub(crate) async fn host_network_job_cannot_answer_for_another(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    const PORT: &str = "17431";
    let on_the_machine = |job: Job| Job {
        labels: vec![("paceline.endpoint", PORT)],
        env: vec![format!("PACELINE_LISTEN=127.0.0.1:{PORT}")],
        host: HostConfig { network_mode: Some("host".to_owned()), ..HostConfig::default() },
        ..job
    };
    let args = vec!["--answer", "nothing", "--work", "10000000"];
    env.start(on_the_machine(Job { name: "mute", args, ..Job::default() })).await?;
    env.start(on_the_machine(growing())).await?;
    let allocator = Allocator::run(&env, &QUICK)?;
    allocator.says(&["job appeared", "growing"]).await?;
    let stranger = format!("port {PORT} is not the container's own");
    allocator.says(&["WARN", &env.name("mute"), "is not managed", &stranger]).await?;
    allocator.end().await
}

pub(crate) async fn containers_on_one_network_are_told_apart(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    const PORT: &str = "17432";
    let first = env.start(growing()).await?;
    let beside = |job: Job| Job {
        host: HostConfig {
            network_mode: Some(format!("container:{first}")),
            ..HostConfig::default()
        },
        ..job
    };
    // It says nothing by itself, and the first one's port has the default number.
    let args = || vec!["--answer", "nothing", "--work", "10000000"];
    let thief = Job { name: "thief", args: args(), env: vec![listens("17433")], ..Job::default() };
    env.start(beside(thief)).await?;
    let labels = vec![("paceline.endpoint", PORT)];
    let env_of = vec![listens("17434")];
    let mute = Job { name: "mute", args: args(), labels, env: env_of, ..Job::default() };
    env.start(beside(mute)).await?;
    let labels = vec![("paceline.sidecar-of", "mute")];
    let side = Job { name: "side", stranger: true, labels, env: vec![listens(PORT)], ..growing() };
    env.start(beside(side)).await?;
    let allocator = Allocator::run(&env, &QUICK)?;
    for job in ["growing", "mute"] {
        allocator.says(&["job appeared", job]).await?;
    }
    let stranger = "port 7223 is not the container's own";
    allocator.says(&["WARN", &env.name("thief"), "is not managed", stranger]).await?;
    anyhow::ensure!(!allocator.said().contains("job=thief"), "{}", allocator.said());
    allocator.end().await?;
    let check = |job: &'static str| {
        let name = env.name(job);
        async move {
            let output = Allocator::command(&["check", &name])?.output().await?;
            anyhow::Ok((output.status.code(), String::from_utf8(output.stdout)?))
        }
    };
    // Alone on its network, the thief would count as reporting.
    let (code, said) = check("thief").await?;
    anyhow::ensure!(code == Some(1) && said.contains(stranger), "{said}");
    let shared = said.lines().find(|line| line.starts_with("network")).unwrap_or_default();
    for other in ["growing", "mute"] {
        anyhow::ensure!(shared.contains(&env.name(other)), "{other} is missing: {said}");
    }
    for job in ["growing", "mute"] {
        until(&format!("{job} answers"), || async {
            Ok((check(job).await?.0 == Some(0)).then_some(()))
        })
        .await?;
    }
    Ok(())
}

/// Where a toy job's endpoint listens.
fn listens(port: &str) -> String {
    format!("PACELINE_LISTEN=127.0.0.1:{port}")
}
