//! Progress on standard error: live lines on a terminal, else one line every few seconds.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use paceline_api::samples::SampleJob;
use tokio::time::Instant;

/// How often a line is written if standard error is not a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// The progress of one stage: the calibration, or one run.
#[derive(Debug)]
pub(crate) struct Progress {
    title: String,
    began: Instant,
    /// Each job's name and newest state, in the schedule's order.
    jobs: Vec<(String, String)>,
    display: Display,
}

#[derive(Debug)]
enum Display {
    Bars { head: ProgressBar, jobs: BTreeMap<String, ProgressBar> },
    Lines { last: Instant },
}

impl Progress {
    /// Begins the stage `title` with the jobs `names`.
    pub(crate) fn begin<'a>(title: String, names: impl Iterator<Item = &'a str>) -> Self {
        let jobs: Vec<_> = names.map(|name| (name.to_owned(), "waiting".to_owned())).collect();
        let began = Instant::now();
        let display = if std::io::stderr().is_terminal() {
            bars(&jobs)
        } else {
            say(&title);
            Display::Lines { last: began }
        };
        Self { title, began, jobs, display }
    }

    /// Sets the state of `job`.
    pub(crate) fn job(&mut self, job: &str, is: String) {
        if let Some((_, last)) = self.jobs.iter_mut().find(|(name, _)| name == job) {
            *last = is;
        }
    }

    /// Draws the current state.
    pub(crate) fn draw(&mut self) {
        let elapsed = self.began.elapsed().as_secs();
        match &mut self.display {
            Display::Bars { head, jobs } => {
                head.set_message(format!("{}: {elapsed} s", self.title));
                for (name, is) in &self.jobs {
                    if let Some(bar) = jobs.get(name) {
                        bar.set_message(format!("{name}: {is}"));
                    }
                }
            }
            Display::Lines { last } if last.elapsed() >= LINE_INTERVAL => {
                *last += LINE_INTERVAL;
                let jobs: Vec<_> =
                    self.jobs.iter().map(|(name, is)| format!("{name}: {is}")).collect();
                say(&format!("{}, {elapsed} s | {}", self.title, jobs.join(" | ")));
            }
            Display::Lines { .. } => {}
        }
    }
}

impl Drop for Progress {
    /// Leaves the last state on the terminal.
    fn drop(&mut self) {
        if let Display::Bars { head, jobs } = &self.display {
            head.abandon();
            jobs.values().for_each(ProgressBar::abandon);
        }
    }
}

/// The state of a running job, as text.
pub(crate) fn words(job: &SampleJob) -> String {
    let or_dash = |known: Option<String>| known.unwrap_or_else(|| "-".to_owned());
    format!(
        "loss {}, limit {}, step {}",
        or_dash(job.loss.map(|loss| format!("{loss:.4}"))),
        or_dash(job.limit.map(|limit| format!("{:.0} %", 100.0 * limit))),
        or_dash(job.steps.map(|steps| steps.to_string())),
    )
}

/// Writes one line to standard error. A closed standard error must not end a bench.
pub(crate) fn say(line: &str) {
    drop(writeln!(std::io::stderr(), "{line}"));
}

fn bars(jobs: &[(String, String)]) -> Display {
    let all = MultiProgress::new();
    let line = || all.add(ProgressBar::no_length());
    let head = line();
    head.enable_steady_tick(Duration::from_millis(200));
    let jobs = jobs
        .iter()
        .map(|(name, _)| {
            let bar = line();
            if let Ok(style) = ProgressStyle::with_template("    {wide_msg}") {
                bar.set_style(style);
            }
            (name.clone(), bar)
        })
        .collect();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
        head.set_style(style);
    }
    Display::Bars { head, jobs }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_values_are_dashes() {
        let mut job = SampleJob {
            id: "vae".to_owned(),
            loss: Some(118.25),
            steps: Some(70),
            cpu: None,
            throttled: None,
            limit: Some(0.25),
            target_acceptable: None,
            target_objective: None,
            acceptable_at: None,
            objective_at: None,
        };
        assert_eq!(words(&job), "loss 118.2500, limit 25 %, step 70");
        (job.loss, job.steps, job.limit) = (None, None, None);
        assert_eq!(words(&job), "loss -, limit -, step -");
    }
}
