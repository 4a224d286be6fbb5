//! The page of a job, at the endpoint of a reporter, beside what the endpoint says.

use std::time::Duration;

use anyhow::{Context, ensure};
use paceline_reporter::wire::{History, Progress};
use paceline_reporter::{LocalAddr, Reporter};
use serde_json::Value;

use super::figures::{list, text};
use super::seen::{UNREADABLE, ensure_own};
use super::webdriver::{Browser, Programs};
use super::{ask, picture};

/// A name that would be a script, if a page took it for markup.
pub(super) const HOSTILE: &str =
    "<img src=x onerror=alert(1)> & a name long enough to break a narrow page";
/// The steps that the job reports, of so many.
const STEPS: u32 = 1_500;
const TOTAL: u64 = 4_000;
/// Steps between two validations.
const EPOCH: u32 = 150;

/// A job that reports, and a browser that shows its page.
struct Stage {
    browser: Browser,
    reporter: Option<Reporter>,
    address: String,
}

impl Stage {
    fn set(programs: &Programs) -> anyhow::Result<Self> {
        let job = Reporter::builder(HOSTILE).loss_name("cross entropy").total_steps(TOTAL);
        let job = job.acceptable(0.9).objective(0.5).batch_latency(0.05).dataset("MNIST");
        let reporter = job.listen("127.0.0.1:0").start()?;
        let Some(LocalAddr::Tcp(address)) = reporter.local_addr() else {
            anyhow::bail!("it listens on a port");
        };
        let address = format!("http://{address}/");
        let browser = Browser::start(programs)?;
        Ok(Self { browser, reporter: Some(reporter), address })
    }

    fn open(&self) -> anyhow::Result<()> {
        self.browser.open(&self.address)?;
        self.browser.until("the page is live", "return document.querySelector('.state.on')")
    }

    fn reporter(&self) -> anyhow::Result<&Reporter> {
        self.reporter.as_ref().context("the job runs")
    }

    /// Reports steps `from..to`, as a training would, in a few readings of the endpoint.
    fn train(&self, from: u32, to: u32) -> anyhow::Result<()> {
        let reporter = self.reporter()?;
        for step in from..to {
            let at = f64::from(step);
            let noise = (at * 12.9898).sin() * 0.12 + (at * 4.1414).sin() * 0.08;
            let slow = if step % 40 == 7 { 0.03 } else { 0.0 };
            let took = 0.02 + 0.004 * (at * 0.7).sin().abs() + slow;
            let level = 0.55 + 1.9 / (1.0 + at / 180.0);
            reporter.record(Some(level + noise), Some(Duration::from_secs_f64(took)));
            if step % EPOCH == EPOCH - 1 {
                reporter.epoch(u64::from(1 + step / EPOCH));
                reporter.validation(level + 0.05);
            }
            // A point of the past for every 30 steps needs as many readings.
            if step % 30 == 29 {
                std::thread::park_timeout(Duration::from_millis(130));
            }
        }
        Ok(())
    }

    fn progress(&self) -> anyhow::Result<Progress> {
        Ok(serde_json::from_str(&ask(&self.browser, "v1/progress")?)?)
    }

    fn past(&self) -> anyhow::Result<History> {
        Ok(serde_json::from_str(&ask(&self.browser, "v1/history")?)?)
    }

    /// Waits until the page shows the last step.
    fn until_step(&self, step: u32) -> anyhow::Result<()> {
        let words = format!(
            "const shown = [...document.querySelectorAll('#summary div')]
                 .find((one) => one.firstChild.textContent === 'Step');
             return shown && shown.lastChild.firstChild.textContent.replace(/\\D/g, '') === '{step}';"
        );
        self.browser.until("the page shows the last step", &words)
    }

    /// The figure under a term.
    fn figure(&self, term: &str) -> anyhow::Result<String> {
        let found = self.browser.run(&format!(
            "const found = [...document.querySelectorAll('dl div')]
                 .find((one) => one.firstChild.textContent === '{term}');
             return found ? found.lastChild.firstChild.textContent : null;"
        ))?;
        Ok(found.as_str().with_context(|| format!("the page shows {term}"))?.to_owned())
    }
}

/// The number that a text begins with.
pub(super) fn number(text: &str) -> f64 {
    let digits: String = text.chars().take_while(|letter| !letter.is_alphabetic()).collect();
    digits.replace(['\u{2009}', ' ', '%'], "").parse().unwrap_or(f64::NAN)
}

pub(super) fn near(shown: f64, known: Option<f64>) -> bool {
    known.is_some_and(|known| (shown - known).abs() <= 2e-3 * known.abs())
}

/// Whether the loss chart has a line of each kind, and how many points each has.
const LINES: &str = "return ['raw', 'smooth', 'validation'].map((kind) =>
    (document.querySelector(`#loss path.${kind}`)?.getAttribute('d') ?? '').split('L').length);";

pub(super) fn figures_agree(programs: &Programs) -> anyhow::Result<()> {
    let stage = Stage::set(programs)?;
    stage.train(0, STEPS / 2)?;
    stage.open()?;
    stage.train(STEPS / 2, STEPS)?;
    stage.until_step(STEPS)?;
    let known = stage.progress()?;
    ensure!(near(number(&stage.figure("Best")?), known.eval.best), "best");
    ensure!(near(number(&stage.figure("Mean of the last")?), known.eval.value), "mean");
    ensure!(near(number(&stage.figure("Smoothed")?), known.signals.loss_smoothed), "smoothed");
    let validation = known.validation.map(|validation| validation.value);
    ensure!(near(number(&stage.figure("Validation")?), validation), "validation");
    for (term, seconds) in [
        ("Median", known.batch_latency.p50),
        ("p95", known.batch_latency.p95),
        ("p99", known.batch_latency.p99),
    ] {
        let shown = stage.figure(term)?;
        ensure!(shown.ends_with(" ms") && near(number(&shown) / 1e3, seconds), "{term}: {shown}");
    }
    let targets = stage.browser.run(
        "return [...document.querySelectorAll('#targets tbody tr')]
             .map((row) => [...row.cells].map((cell) => cell.textContent));",
    )?;
    ensure!(targets[0][0] == "acceptable" && targets[0][1] == "0.9", "{targets}");
    ensure!(text(&targets[0][2]).starts_with("at "), "it is reached: {targets}");
    ensure!(!text(&targets[1][2]).starts_with("at "), "it is not: {targets}");
    ensure!(stage.figure("State")? == "Training" || stage.figure("State")? == "Stalled");
    ensure!(known.total_steps == Some(TOTAL) && known.step == Some(u64::from(STEPS)));
    Ok(())
}

pub(super) fn charts_show_the_past(programs: &Programs) -> anyhow::Result<()> {
    let stage = Stage::set(programs)?;
    stage.train(0, STEPS)?;
    stage.open()?;
    stage.until_step(STEPS)?;
    stage.browser.until(
        "the chart has the past from before the page was opened",
        "return (document.querySelector('#loss path.raw')?.getAttribute('d') ?? '').split('L').length > 5",
    )?;
    let past = stage.past()?;
    let known = |values: &[Option<f64>]| values.iter().flatten().count();
    let lines = stage.browser.run(LINES)?;
    let expected =
        [known(&past.loss), known(&past.loss_smoothed), known(&past.validation)].map(Value::from);
    ensure!(lines == Value::from(expected.to_vec()), "{lines} are not {expected:?}");
    // By time the same points stand elsewhere.
    let at = "return document.querySelector('#loss path.raw').getAttribute('d')";
    let by_step = stage.browser.run(at)?;
    stage.browser.run("document.querySelector('input[value=time]').click()")?;
    ensure!(stage.browser.run(at)? != by_step, "the axis shows time");
    ensure!(stage.browser.run(LINES)? == lines, "no point is lost");
    Ok(())
}

pub(super) fn page_is_readable_and_its_own(programs: &Programs) -> anyhow::Result<()> {
    let stage = Stage::set(programs)?;
    stage.train(0, STEPS)?;
    stage.open()?;
    stage.until_step(STEPS)?;
    for scheme in ["light", "dark"] {
        for (size, width, height) in [("wide", 1280, 1500), ("narrow", 390, 3000)] {
            stage.browser.look(scheme, width, height)?;
            stage.browser.until(
                "charts are drawn",
                "return document.querySelector('#loss path.smooth') && document.querySelector('#batch path.p99')",
            )?;
            let bad = stage.browser.run(UNREADABLE)?;
            ensure!(list(&bad).is_empty(), "{scheme}, {width} px: {bad}");
            picture(&stage.browser, &format!("job-{scheme}-{size}"))?;
        }
    }
    let name = stage.browser.run("return document.querySelector('h1').textContent")?;
    ensure!(name == HOSTILE, "{name}");
    ensure_own(&stage.browser)
}

pub(super) fn end_is_shown(programs: &Programs) -> anyhow::Result<()> {
    let mut stage = Stage::set(programs)?;
    stage.train(0, 60)?;
    stage.open()?;
    stage.reporter()?.finish();
    stage.browser.until(
        "the end is shown",
        "return document.querySelector('#summary dd').firstChild.textContent === 'Finished'",
    )?;
    stage.reporter = None;
    stage.browser.until(
        "the closed endpoint is shown, without an alarm",
        "return document.querySelector('#state').textContent.trim() === 'Closed'
             && !document.querySelector('#notice').checkVisibility()",
    )
}
