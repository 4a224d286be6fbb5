//! Endpoints, good and bad.

use std::sync::Arc;

use bollard::models::HostConfig;
use paceline_system_tests::{Allocator, Bed, Job, until};

use crate::flowcon::{QUICK, ensure_unlimited, flat, flat_and_growing, growing, until_cut};

pub(crate) async fn what_does_not_report_is_named_and_left_alone(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let kinds = [("mute", "nothing"), ("dead", "silence"), ("babbling", "garbage")];
    let mut left_alone = Vec::new();
    for (name, answer) in kinds {
        let args = vec!["--answer", answer, "--work", "10000000"];
        left_alone.push(bed.start(Job { name, args, ..Job::default() }).await?);
    }
    let labels = vec![("paceline.min-cpus", "much")];
    left_alone.push(bed.start(Job { name: "mislabelled", labels, ..Job::default() }).await?);
    let flat = flat_and_growing(&bed).await?;
    let allocator = Allocator::run(&bed, &QUICK)?;
    for (name, reason) in [
        ("mute", "no answer from port 7223"),
        ("dead", "no answer from port 7223"),
        ("babbling", "does not speak HTTP"),
        ("mislabelled", r#"label paceline.min-cpus="much": must be a number above 0"#),
    ] {
        allocator.says(&["WARN", &bed.name(name), "left alone", reason]).await?;
    }
    // The others are managed as if these were not there: two jobs, so a quarter.
    until_cut(&bed, &flat).await?;
    for name in left_alone {
        anyhow::ensure!(bed.limits(&name).await?.host.nano_cpus == 0, "{name} was limited");
    }
    allocator.end().await
}

pub(crate) async fn a_unix_socket_is_read_through_the_containers_root(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let by_socket = |job: Job| Job {
        labels: vec![("paceline.endpoint", "unix:/job.sock")],
        env: vec!["PACELINE_LISTEN=unix:/job.sock".to_owned()],
        ..job
    };
    let flat = bed.start(by_socket(flat())).await?;
    bed.start(by_socket(growing())).await?;
    let allocator = Allocator::run(&bed, &QUICK)?;
    until_cut(&bed, &flat).await?;
    allocator.end().await?;
    ensure_unlimited(&bed, &flat).await
}

pub(crate) async fn a_container_that_did_not_opt_in_is_never_touched(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let stranger = bed.start(Job { name: "stranger", stranger: true, ..Job::default() }).await?;
    let flat = flat_and_growing(&bed).await?;
    let before = bed.limits(&stranger).await?;
    let allocator = Allocator::run(&bed, &QUICK)?;
    until_cut(&bed, &flat).await?;
    anyhow::ensure!(bed.limits(&stranger).await? == before, "it was touched");
    anyhow::ensure!(!allocator.said().contains("stranger"), "{}", allocator.said());
    allocator.end().await?;
    anyhow::ensure!(bed.limits(&stranger).await? == before, "it was touched");
    Ok(())
}

pub(crate) async fn check_says_what_is_wrong(bed: Arc<Bed>) -> anyhow::Result<()> {
    let good = bed.start(growing()).await?;
    let mute = Job { name: "mute", args: vec!["--answer", "nothing"], ..Job::default() };
    let mute = bed.start(mute).await?;
    let stranger = bed.start(Job { name: "stranger", stranger: true, ..Job::default() }).await?;
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
    for word in ["opted in", "cgroup", "NanoCpus", "answers", "job toy"] {
        anyhow::ensure!(said.contains(word), "{word} is missing: {said}");
    }
    for words in [&["check", &good][..], &["check", "--json", &good]] {
        // A job on a busy machine may answer late for once.
        until("the check ends well without a reader", || async {
            let unread = Allocator::unread(words).await?;
            anyhow::ensure!(unread.stderr.is_empty(), "{unread:?}");
            Ok(unread.status.success().then_some(()))
        })
        .await?;
    }
    let (code, said) = check(mute).await?;
    anyhow::ensure!(code == Some(1) && said.contains("WRONG"), "{said}");
    let (code, said) = check(stranger).await?;
    anyhow::ensure!(code == Some(1) && said.contains("paceline.enable=true is missing"), "{said}");
    let (code, _) = check("no-such-container".to_owned()).await?;
    anyhow::ensure!(code == Some(2), "{code:?}");
    Ok(())
}

pub(crate) async fn on_the_machines_network_nobody_answers_for_another(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    const PORT: &str = "17431";
    let on_the_machine = |job: Job| Job {
        labels: vec![("paceline.endpoint", PORT)],
        env: vec![format!("PACELINE_LISTEN=127.0.0.1:{PORT}")],
        host: HostConfig { network_mode: Some("host".to_owned()), ..HostConfig::default() },
        ..job
    };
    let args = vec!["--answer", "nothing", "--work", "10000000"];
    bed.start(on_the_machine(Job { name: "mute", args, ..Job::default() })).await?;
    bed.start(on_the_machine(growing())).await?;
    let allocator = Allocator::run(&bed, &QUICK)?;
    allocator.says(&["job appeared", "growing"]).await?;
    let stranger = format!("port {PORT} is not the container's own");
    allocator.says(&["WARN", &bed.name("mute"), "left alone", &stranger]).await?;
    allocator.end().await
}
