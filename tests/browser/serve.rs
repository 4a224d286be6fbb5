//! The page of `paceline-sidecar serve`, beside what the endpoints of the jobs say.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use paceline_reporter::Reporter;
use paceline_reporter::wire::Progress;
use paceline_system_tests::program;
use serde_json::Value;
use tempfile::TempDir;

use super::figures::{list, text};
use super::job::{HOSTILE, near, number};
use super::seen::{UNREADABLE, ensure_own};
use super::webdriver::{Browser, Programs};
use super::{ask, picture};

/// The steps that a job reports, of so many.
const STEPS: u32 = 90;
const TOTAL: u64 = 360;

/// `serve` over a folder of sockets, and a browser that shows its page.
struct Stage {
    browser: Browser,
    folder: TempDir,
    _serve: Serve,
}

/// The running command. Dropping this ends it.
struct Serve {
    child: Child,
    /// Kept open: writing to a closed pipe would end the command.
    said: BufReader<ChildStderr>,
}

impl Drop for Serve {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Serve {
    /// Starts it. Returns its address, too.
    fn start(folder: &Path) -> anyhow::Result<(Self, String)> {
        let mut command = Command::new(program("paceline-sidecar")?);
        command.args(["serve", "--listen", "127.0.0.1:0", "--folder"]).arg(folder);
        command.env_remove("PACELINE_LISTEN").stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let said = BufReader::new(child.stderr.take().context("stderr is piped")?);
        let mut serve = Self { child, said };
        let mut first = String::new();
        serve.said.read_line(&mut first)?;
        let at = first.find("http://").with_context(|| first.clone())?;
        Ok((serve, first.get(at..).unwrap_or_default().trim().to_owned()))
    }
}

impl Stage {
    fn set(programs: &Programs) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let (serve, address) = Serve::start(folder.path())?;
        let browser = Browser::start(programs)?;
        browser.open(&address)?;
        browser.until("the page is live", "return document.querySelector('#state.on')")?;
        Ok(Self { browser, folder, _serve: serve })
    }

    /// The address of a job's socket.
    fn address(&self, socket: &str) -> String {
        format!("unix:{}/{socket}.sock", self.folder.path().display())
    }

    /// Starts a job and reports its first steps. `worse` is added to its losses.
    fn train(&self, socket: &str, name: &str, worse: f64) -> anyhow::Result<Reporter> {
        let job = Reporter::builder(name).total_steps(TOTAL).acceptable(0.5);
        let reporter = job.listen(&self.address(socket)).start()?;
        for step in 1..=STEPS {
            let loss = worse + 2.0 / f64::from(step);
            let took = Duration::from_millis(10 + u64::from(step % 7));
            reporter.record(Some(loss), Some(took));
        }
        reporter.epoch(2);
        Ok(reporter)
    }

    /// The listed job at a socket, once it is listed with all of its steps.
    fn listed(&self, socket: &str) -> anyhow::Result<Value> {
        let address = self.address(socket);
        let is_listed = format!(
            "const ask = new XMLHttpRequest(); ask.open('GET', 'v1/jobs', false); ask.send();
             return JSON.parse(ask.responseText).jobs.some(
                 (job) => job.address === '{address}' && job.progress.step === {STEPS});"
        );
        self.browser.until("the job is listed", &is_listed)?;
        let listing: Value = serde_json::from_str(&ask(&self.browser, "v1/jobs")?)?;
        let found = list(&listing["jobs"]).iter().find(|job| job["address"] == address.as_str());
        Ok(found.context("it is still listed")?.clone())
    }

    /// What the card of a listed job shows, once it shows all of its steps.
    fn card(&self, listed: &Value) -> anyhow::Result<Value> {
        let instance = text(&listed["progress"]["instance"]);
        let card =
            format!("const card = document.querySelector('[data-instance=\"{instance}\"]');");
        let is_shown = format!(
            "{card} return card && [...card.querySelectorAll('.facts div')].some((one) =>
                 one.firstChild.textContent === 'Step'
                     && one.lastChild.firstChild.textContent === '{STEPS}');"
        );
        self.browser.until("the card shows the last step", &is_shown)?;
        self.browser.run(&format!(
            "{card} return {{
                 name: card.querySelector('h2').textContent,
                 link: card.querySelector('h2 a')?.getAttribute('href') ?? null,
                 state: card.querySelector('.state').textContent,
                 points: (card.querySelector('.curve path')?.getAttribute('d') ?? '').split('L').length,
                 done: card.querySelector('[role=progressbar]')?.getAttribute('aria-valuenow') ?? null,
                 facts: Object.fromEntries([...card.querySelectorAll('.facts div')].map((one) =>
                     [one.firstChild.textContent, [one.lastChild.firstChild.textContent,
                         one.lastChild.querySelector('small')?.textContent ?? '']])),
             }};"
        ))
    }
}

/// Fails unless a card agrees with the endpoint of its job, to the digits shown.
fn ensure_agrees(card: &Value, known: &Progress) -> anyhow::Result<()> {
    let facts = &card["facts"];
    let loss = known.signals.loss_smoothed.or(known.eval.value);
    ensure!(near(number(text(&facts["Loss"][0])), loss), "loss {loss:?}: {card}");
    let best = text(&facts["Loss"][1]).strip_prefix("best ").map(number);
    ensure!(near(best.context("the best loss is shown")?, known.eval.best), "best: {card}");
    ensure!(known.step == Some(u64::from(STEPS)) && facts["Step"][0] == "90", "step: {card}");
    ensure!(facts["Step"][1] == "of 360, epoch 2", "total and epoch: {card}");
    for (shown, seconds) in [
        (&facts["Batch"][0], known.batch_latency.p50),
        (&facts["Batch"][1], known.batch_latency.p99),
    ] {
        let shown = text(shown).trim_start_matches("p99 ");
        ensure!(shown.ends_with(" ms") && near(number(shown) / 1e3, seconds), "{shown}: {card}");
    }
    ensure!(facts["Time left"][1] == "25.0 % done" && card["done"] == "25", "progress: {card}");
    Ok(())
}

pub(super) fn figures_agree(programs: &Programs) -> anyhow::Result<()> {
    let stage = Stage::set(programs)?;
    let _jobs = [stage.train("vae", "vae", 0.25)?, stage.train("odd", HOSTILE, 1.5)?];
    for (socket, name) in [("vae", "vae"), ("odd", HOSTILE)] {
        let listed = stage.listed(socket)?;
        let card = stage.card(&listed)?;
        let page = format!("jobs/{}/", text(&listed["key"]));
        let said = ask(&stage.browser, &format!("{page}v1/progress"))?;
        let known: Progress = serde_json::from_str(&said)?;
        ensure_agrees(&card, &known)?;
        ensure!(card["name"] == name && known.job == name, "{card}");
        ensure!(card["link"] == page.as_str() && card["points"].as_u64() >= Some(1), "{card}");
    }
    // The link leads to the page of the job, behind this server.
    stage.browser.run("document.querySelector('#jobs h2 a').click()")?;
    stage.browser.until(
        "the page of the job is live",
        "return location.pathname.startsWith('/jobs/') && document.querySelector('.state.on')",
    )?;
    let name = stage.browser.run("return document.querySelector('h1').textContent")?;
    ensure!(name == "vae" || name == HOSTILE, "{name}");
    Ok(())
}

pub(super) fn starts_and_ends_are_shown(programs: &Programs) -> anyhow::Result<()> {
    let stage = Stage::set(programs)?;
    let first = stage.train("first", "first", 0.25)?;
    let listed = stage.listed("first")?;
    stage.card(&listed)?;
    // The page was opened before; nothing reloads it.
    let second = stage.train("second", "second", 0.5)?;
    stage.card(&stage.listed("second")?)?;
    first.finish();
    let instance = text(&listed["progress"]["instance"]);
    let state = format!(
        "const card = document.querySelector('[data-instance=\"{instance}\"]');
         return card && card.className === 'over'
             && card.querySelector('.state').textContent === 'Finished';"
    );
    stage.browser.until("the end of the first is shown", &state)?;
    drop(first);
    let gone = format!(
        "const card = document.querySelector('[data-instance=\"{instance}\"]');
         return !card || !card.querySelector('h2 a');"
    );
    stage.browser.until("a job that is gone has no page", &gone)?;
    drop(second);
    Ok(())
}

pub(super) fn page_is_readable_and_its_own(programs: &Programs) -> anyhow::Result<()> {
    let stage = Stage::set(programs)?;
    let _jobs = [stage.train("vae", "vae", 0.25)?, stage.train("odd", HOSTILE, 1.5)?];
    stage.card(&stage.listed("vae")?)?;
    stage.card(&stage.listed("odd")?)?;
    for scheme in ["light", "dark"] {
        for (size, width, height) in [("wide", 1280, 900), ("narrow", 390, 1600)] {
            stage.browser.look(scheme, width, height)?;
            let bad = stage.browser.run(UNREADABLE)?;
            ensure!(list(&bad).is_empty(), "{scheme}, {width} px: {bad}");
            picture(&stage.browser, &format!("serve-{scheme}-{size}"))?;
        }
    }
    ensure_own(&stage.browser)
}
