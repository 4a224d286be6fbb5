//! The allocator's page in a real browser, with sample jobs, and with real ones on a real engine; and the
//! pages of one job and of all local jobs.
//! Without Chromium and its driver, or without an engine, the tests are reported as skipped.
//!
//! With `PACELINE_PICTURES=DIR`, screenshots of the page are written there.

#![expect(clippy::indexing_slicing, reason = "a missing JSON field is null")]

mod figures;
mod job;
mod real;
mod seen;
mod serve;
mod webdriver;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use libtest_mimic::{Arguments, Trial};
use paceline_api::live::{DaemonChannels, Snapshot};
use paceline_server::web::Web;
use paceline_system_tests::sample_snapshot;
use tokio::runtime::Runtime;

use webdriver::{Browser, Programs};

/// When the sample run began, in Unix seconds.
const BEGAN: f64 = 1_760_000_000.0;
/// Seconds of it that have passed when the page is opened.
const PAST: u32 = 400;

type Test = fn(&Stage) -> anyhow::Result<()>;
type JobTest = fn(&Programs) -> anyhow::Result<()>;

const TESTS: [(&str, Test); 11] = [
    ("figures_on_the_page_agree_with_the_api", seen::figures_agree),
    ("charts_show_what_was_before_the_page_was_opened", seen::charts_have_a_past),
    ("labels_of_near_targets_do_not_overlap", seen::target_labels_are_apart),
    ("a_name_that_would_be_a_script_stays_text", seen::names_stay_text),
    ("card_links_to_the_page_of_its_job", seen::card_links_to_the_job),
    ("nothing_comes_from_elsewhere_and_the_browser_has_no_complaint", seen::all_is_own),
    ("text_is_readable_in_light_and_dark_on_wide_and_narrow", seen::is_readable),
    ("order_of_jobs_is_drawn_with_both_ends", seen::order_is_drawn),
    ("machines_and_distributed_jobs_are_shown_with_what_is_wrong", seen::cluster_is_shown),
    ("page_is_usable_by_screen_reader_and_keyboard", seen::is_accessible),
    ("lost_connection_is_shown_and_made_again", seen::connection_comes_back),
];

/// Tests of the page of one job, and of the page that lists the jobs of a machine.
const JOB_TESTS: [(&str, JobTest); 7] = [
    ("figures_on_the_page_of_a_job_agree_with_its_endpoint", job::figures_agree),
    ("charts_of_a_job_show_what_was_before_the_page", job::charts_show_the_past),
    ("page_of_a_job_is_readable_and_loads_nothing_else", job::page_is_readable_and_its_own),
    ("page_of_a_job_shows_its_end", job::end_is_shown),
    ("list_of_jobs_agrees_with_their_endpoints", serve::figures_agree),
    ("list_of_jobs_shows_starts_and_ends", serve::starts_and_ends_are_shown),
    ("list_of_jobs_is_readable_and_loads_nothing_else", serve::page_is_readable_and_its_own),
];

fn main() -> ExitCode {
    let args = Arguments::from_args();
    let programs = Programs::find();
    let trials = TESTS.map(|(name, test)| {
        let programs = programs.clone();
        let missing = programs.is_none();
        let run = move || Ok(test(&Stage::set(&programs.context("there is a browser")?)?)?);
        Trial::test(name, run).with_ignored_flag(missing)
    });
    let mut trials = Vec::from(trials);
    trials.extend(JOB_TESTS.map(|(name, test)| {
        let programs = Programs::find();
        let missing = programs.is_none();
        let run = move || Ok(test(&programs.context("there is a browser")?)?);
        Trial::test(name, run).with_ignored_flag(missing)
    }));
    let missing = programs.is_none() || !real::has_engine();
    let run = move || Ok(real::a_real_run_is_shown(&programs.context("there is a browser")?)?);
    let name = "page_of_a_real_run_agrees_with_the_api";
    trials.push(Trial::test(name, run).with_ignored_flag(missing));
    libtest_mimic::run(&args, trials).exit_code()
}

/// A page and a browser.
struct Stage {
    browser: Browser,
    runtime: Runtime,
    web: std::cell::RefCell<Option<(Web, DaemonChannels)>>,
    address: String,
}

impl Stage {
    fn set(programs: &Programs) -> anyhow::Result<Self> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let web = runtime.block_on(sample_snapshot::page("127.0.0.1:0", BEGAN, PAST))?;
        let address = web.0.address().to_string();
        let browser = Browser::start(programs)?;
        let web = std::cell::RefCell::new(Some(web));
        let stage = Self { browser, runtime, web, address };
        stage.browser.open(&format!("http://{}/", stage.address))?;
        stage.browser.until("the page is live", "return document.querySelector('.state.on')")?;
        Ok(stage)
    }

    /// Publishes the sample snapshot of `t` seconds after the run began.
    fn look(&self, t: f64) {
        self.show(sample_snapshot::snapshot(BEGAN, t));
    }

    /// Publishes a snapshot.
    fn show(&self, snapshot: Snapshot) {
        if let Some((_, channels)) = &*self.web.borrow() {
            channels.snapshots.send_replace(Arc::new(snapshot));
        }
    }

    /// Stops the allocator's page.
    fn end(&self) {
        drop(self.web.take());
    }

    /// Serves the page again.
    fn begin(&self) -> anyhow::Result<()> {
        let web = self.runtime.block_on(sample_snapshot::page(&self.address, BEGAN, PAST))?;
        self.web.replace(Some(web));
        Ok(())
    }
}

/// The API's current snapshot.
fn status(browser: &Browser) -> anyhow::Result<Snapshot> {
    Ok(serde_json::from_str(&ask(browser, "v1/status")?)?)
}

/// What the page's server answers at a path.
fn ask(browser: &Browser, path: &str) -> anyhow::Result<String> {
    let text = browser.run(&format!(
        "const ask = new XMLHttpRequest(); ask.open('GET', '{path}', false); ask.send();
         return ask.responseText;"
    ))?;
    Ok(text.as_str().context("the answer is text")?.to_owned())
}

/// Saves a screenshot if `PACELINE_PICTURES` is set.
fn picture(browser: &Browser, name: &str) -> anyhow::Result<()> {
    let Some(folder) = std::env::var_os("PACELINE_PICTURES").map(PathBuf::from) else {
        return Ok(());
    };
    std::fs::create_dir_all(&folder)?;
    let picture = decode(&browser.picture()?)?;
    Ok(std::fs::write(folder.join(format!("{name}.png")), picture)?)
}

/// The bytes of a text in base64.
fn decode(text: &str) -> anyhow::Result<Vec<u8>> {
    use base64::Engine;
    Ok(base64::engine::general_purpose::STANDARD.decode(text)?)
}
