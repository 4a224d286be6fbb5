//! A real run: an engine, jobs in containers, the allocator as a user starts it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use bollard::Docker;
use bollard::query_parameters::RemoveImageOptionsBuilder;
use paceline_cgroup::Cgroup;
use paceline_system_tests::{Allocator, Job, TestEnv, image_of, until};
use tokio::runtime::Runtime;

use super::figures::{ROWS, Shown, list, text};
use super::seen;
use super::status;
use super::webdriver::{Browser, Programs};

/// Snapshots of the allocator that are compared with the page.
const LOOKS: usize = 5;
/// How often the page is read until it agrees, and the time in between.
const TRIES: usize = 1200;
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Whether an engine answers.
pub(super) fn has_engine() -> bool {
    Runtime::new().is_ok_and(|runtime| runtime.block_on(connect()).is_ok())
}

async fn connect() -> anyhow::Result<Docker> {
    Ok(Docker::connect_with_defaults()?.negotiate_version().await?)
}

pub(super) fn a_real_run_is_shown(programs: &Programs) -> anyhow::Result<()> {
    let runtime = Runtime::new()?;
    runtime.block_on(async {
        let docker = connect().await?;
        let image = format!("paceline-test/page:{}", std::process::id());
        image_of(&docker, &image, &[env!("CARGO_BIN_EXE_toy-job").as_ref()]).await?;
        let env = Arc::new(TestEnv::new(docker.clone(), &image, "page")?);
        let outcome = shown(&env, programs).await;
        env.clear().await?;
        let force = RemoveImageOptionsBuilder::default().force(true).build();
        docker.remove_image(&image, Some(force), None).await?;
        outcome
    })
}

async fn shown(env: &Arc<TestEnv>, programs: &Programs) -> anyhow::Result<()> {
    let flat = env.start(Job { name: "flat", ..Job::default() }).await?;
    for (name, args) in [
        ("growing", vec!["--half-life", "40000"]),
        ("worse", vec!["--half-life=-40000"]),
        ("babbling", vec!["--answer", "garbage", "--work", "10000000"]),
    ] {
        env.start(Job { name, args, ..Job::default() }).await?;
    }
    let mut command = Allocator::running(env)?;
    command.args(["--listen", "127.0.0.1:0", "--policy", "flowcon", "--param", "interval=2"]);
    command.args(["--param", "alpha=0.0001", "--enforcement", "quota"]);
    let allocator = Allocator::spawn(command)?;
    let address = until("the page is served", || async { Ok(address(&allocator.said())) })
        .await
        .with_context(|| allocator.said())?;
    let pid = env.inspect(&flat).await?.pid.context("it runs")?;
    let cgroup = Cgroup::for_process(Path::new("/proc"), pid)?;
    until("the flat job is cut", || async { Ok(cgroup.quota()?.quota.map(drop)) }).await?;
    let cpus = env.docker().info().await?.ncpu.context("an engine has CPUs")?;
    // The browser's calls block. The runtime serves nothing here meanwhile.
    tokio::task::block_in_place(|| -> anyhow::Result<()> {
        let browser = Browser::start(programs)?;
        browser.open(&address)?;
        browser.until("the page is live", "return document.querySelector('.state.on')")?;
        ensure_agree(&browser)?;
        ensure_kernels(&browser, &cgroup, cpus)?;
        seen::in_every_light(&browser, "real-", || Ok(()))
    })?;
    allocator.end().await
}

/// The page's address, from the allocator's log.
fn address(said: &str) -> Option<String> {
    let line = said.lines().find(|line| line.contains("serving the page and the API"))?;
    let begin = line.find("http://")?;
    let address = line.get(begin..)?;
    let end = address.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(address.len());
    address.get(..end).map(str::to_owned)
}

/// Compares several snapshots. Page and API may differ by one snapshot, but only briefly.
fn ensure_agree(browser: &Browser) -> anyhow::Result<()> {
    let mut agreed = BTreeSet::new();
    soon(|| {
        let (shown, status) = (Shown::read(browser)?, status(browser)?);
        shown.ensure_is(&status)?;
        ensure!(status.jobs.len() == 4, "not all jobs are seen yet");
        agreed.insert(status.t.to_bits());
        ensure!(agreed.len() >= LOOKS, "only {} snapshots were shown correctly", agreed.len());
        Ok(())
    })
}

/// Fails unless the page shows the kernel's limit.
fn ensure_kernels(browser: &Browser, cgroup: &Cgroup, cpus: i64) -> anyhow::Result<()> {
    let cpus = f64::from(u32::try_from(cpus)?);
    soon(|| {
        let share = cgroup.quota()?.share(cpus).get();
        let rows = browser.run(ROWS)?;
        let row = list(&rows).iter().find(|row| row[0] == "flat").context("it has a row")?;
        ensure!(text(&row[6]) == format!("{:.1} %", 100.0 * share), "{row}: it has {share}");
        Ok(())
    })
}

/// Repeats a check until it passes; returns the last error if it never does.
fn soon(mut look: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<()> {
    for _ in 0..TRIES {
        if look().is_ok() {
            return Ok(());
        }
        std::thread::park_timeout(POLL_INTERVAL);
    }
    look()
}
