//! The arguments, and the environment that replaces them.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use clap::Args;
use paceline_reporter::wire::Progress;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::cli::otlp::{OtlpArgs, Receiver};
use crate::cli::{Failure, chain, values};
use crate::forward::hook::{self, Hook, Rule};
use crate::forward::katib::Katib;
use crate::forward::statsd::{Address, DEFAULT_PREFIX, Statsd};
use crate::forward::trainjob::TrainJob;
use crate::forward::webhook::Webhook;
use crate::forward::{DEFAULT_FLUSH_TIMEOUT, EventSet, Forwarding, Target};
use crate::job::Job;
use crate::say::say;

/// Where to forward the progress. An option overrides its variable.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Forward")]
pub(in crate::cli) struct ForwardArgs {
    /// Update the status of the Kubeflow `TrainJob` that this process belongs to, at most every 5 s
    /// [env: `PACELINE_TRAINJOB=1`]
    #[arg(long)]
    trainjob: bool,
    /// A file for Katib's file collector, such as `/var/log/katib/metrics.log`; lines are appended
    /// [env: `PACELINE_KATIB`]
    #[arg(long, value_name = "FILE", value_parser = values::path())]
    katib: Option<PathBuf>,
    /// A statsd server: `udp://host:port` or `unix:/path` [env: `PACELINE_STATSD_OUT`]
    #[arg(long, value_name = "ADDRESS")]
    statsd_out: Vec<Address>,
    /// What names begin with [default: `paceline.`] [env: `PACELINE_STATSD_PREFIX`]
    #[arg(long, value_name = "TEXT")]
    statsd_prefix: Option<String>,
    /// A tag for each line, for servers that know them, such as `DogStatsD`
    /// [env: `PACELINE_STATSD_TAGS`, with commas]
    #[arg(long, value_name = "NAME:VALUE", value_parser = values::text())]
    statsd_tag: Vec<String>,
    /// A shell command for events: any of `acceptable`, `objective`, `stalled`, `diverging`,
    /// `finished`, `failed`, with commas between them. It reads the event as JSON from its
    /// standard input [env: `PACELINE_ON`, one rule a line]
    #[arg(long, value_name = "EVENTS=COMMAND")]
    on: Vec<Rule>,
    /// The time that such a command may take [default: 60] [env: `PACELINE_ON_TIMEOUT`]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = values::seconds)]
    on_timeout: Option<f64>,
    /// A URL that events are posted to as JSON: `http://` or `https://`
    /// [env: `PACELINE_WEBHOOK`, with spaces between several]
    #[arg(long, value_name = "URL", value_parser = values::text())]
    webhook: Vec<String>,
    /// The events that are posted [default: all] [env: `PACELINE_WEBHOOK_ON`]
    #[arg(long, value_name = "EVENTS")]
    webhook_on: Option<EventSet>,
    #[command(flatten)]
    otlp: OtlpArgs,
    /// The longest wait for the last state to be sent, after the job has ended [default: 8]
    /// [env: `PACELINE_FLUSH_TIMEOUT`]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = values::seconds)]
    flush_timeout: Option<f64>,
}

/// The checked targets, before anything starts.
#[derive(Debug)]
pub(in crate::cli) struct Plan {
    targets: Vec<Box<dyn Target>>,
    /// Its target is made once the job has begun.
    otlp: Option<Receiver>,
    flush: Flush,
}

/// What to do at the end.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct Flush {
    timeout: Duration,
}

impl ForwardArgs {
    /// Checks the targets.
    pub(in crate::cli) fn plan(&self) -> Result<Plan, Failure> {
        let flush_timeout = seconds(self.flush_timeout, "PACELINE_FLUSH_TIMEOUT")?;
        let flush = Flush { timeout: flush_timeout.unwrap_or(DEFAULT_FLUSH_TIMEOUT) };
        let mut targets: Vec<Box<dyn Target>> = Vec::new();
        if let Some(target) = self.trainjob()? {
            targets.push(Box::new(target));
        }
        let katib = self.katib.clone().or(variable("PACELINE_KATIB").map(PathBuf::from));
        if let Some(path) = katib {
            targets.push(Box::new(Katib::new(path)));
        }
        for one in self.statsd()? {
            targets.push(Box::new(one));
        }
        let timeout = seconds(self.on_timeout, "PACELINE_ON_TIMEOUT")?;
        let timeout = timeout.unwrap_or(hook::DEFAULT_TIMEOUT);
        let rules = or_variable(&self.on, "PACELINE_ON", |text| text.lines().collect())?;
        for rule in rules {
            targets.push(Box::new(Hook::new(rule, timeout)));
        }
        for one in self.webhooks()? {
            targets.push(Box::new(one));
        }
        let otlp = self.otlp.plan()?;
        Ok(Plan { targets, otlp, flush })
    }

    /// The `TrainJob`, if it is wanted and there is one. A job must also run where there is none.
    fn trainjob(&self) -> Result<Option<TrainJob>, Failure> {
        if !self.trainjob && !switch("PACELINE_TRAINJOB")? {
            return Ok(None);
        }
        let target = TrainJob::from_environment(env::var_os);
        if let Err(error) = &target {
            say(format_args!("cannot forward to the TrainJob: {error}; the job runs on"));
        }
        Ok(target.ok())
    }

    fn statsd(&self) -> Result<Vec<Statsd>, Failure> {
        let addresses = or_variable(&self.statsd_out, "PACELINE_STATSD_OUT", |text| {
            text.split_whitespace().collect()
        })?;
        let given = self.statsd_prefix.clone();
        let prefix = given.or(text_variable("PACELINE_STATSD_PREFIX")?);
        let prefix = prefix.as_deref().unwrap_or(DEFAULT_PREFIX);
        let tags = match text_variable("PACELINE_STATSD_TAGS")? {
            Some(text) if self.statsd_tag.is_empty() => {
                text.split(',').map(|tag| tag.trim().to_owned()).collect()
            }
            _ => self.statsd_tag.clone(),
        };
        let targets = addresses.into_iter().map(|address| Statsd::new(address, prefix, &tags));
        targets.collect::<Result<_, _>>().map_err(Failure::usage)
    }

    fn webhooks(&self) -> Result<Vec<Webhook>, Failure> {
        let urls = match text_variable("PACELINE_WEBHOOK")? {
            Some(text) if self.webhook.is_empty() => {
                text.split_whitespace().map(str::to_owned).collect()
            }
            _ => self.webhook.clone(),
        };
        let events = match (self.webhook_on, text_variable("PACELINE_WEBHOOK_ON")?) {
            (Some(events), _) => events,
            (None, Some(text)) => {
                text.parse().map_err(|error| wrong("PACELINE_WEBHOOK_ON", error))?
            }
            (None, None) => EventSet::all(),
        };
        // The URL may be a secret, so it is not shown.
        let invalid = |why| Failure::usage(format!("invalid --webhook: {why}"));
        urls.iter().map(|url| Webhook::new(url, events).map_err(invalid)).collect()
    }
}

impl Plan {
    /// Starts forwarding a job, which may continue the progress of an earlier process.
    pub(in crate::cli) fn start(
        self,
        job: &Arc<Job>,
        before: Option<&Progress>,
    ) -> Result<Flush, Failure> {
        let mut targets = self.targets;
        if let Some(before) = before {
            for target in &mut targets {
                target.resume(before);
            }
        }
        if let Some(receiver) = self.otlp {
            targets.extend(receiver.target(job)?);
        }
        // Where reporting is switched off, there is nothing to forward.
        if !targets.is_empty() && job.address().is_some() {
            let started = Forwarding::start(targets).map_err(|error| {
                Failure::running(format!("cannot start forwarding: {}", chain(&error)))
            })?;
            job.forward_to(started);
        }
        Ok(self.flush)
    }
}

impl Flush {
    /// Waits until the last state is sent, for a bounded time. A signal ends the wait.
    pub(in crate::cli) fn run(self, job: &Arc<Job>) {
        let Some(forwarding) = job.forwarding() else { return };
        let handle = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGQUIT]).and_then(|mut signals| {
            let (handle, job) = (signals.handle(), Arc::clone(job));
            thread::Builder::new().name("flush".to_owned()).spawn(move || {
                if signals.forever().next().is_some()
                    && let Some(forwarding) = job.forwarding()
                {
                    forwarding.hurry();
                }
            })?;
            Ok(handle)
        });
        forwarding.close(self.timeout);
        if let Ok(handle) = handle {
            handle.close();
        }
    }
}

/// A variable; an empty one is none, as compose files pass it for an omitted value.
fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.to_string_lossy().trim().is_empty())
}

fn text_variable(name: &str) -> Result<Option<String>, Failure> {
    let text = variable(name).map(OsString::into_string).transpose();
    text.map_err(|_| wrong(name, "expected UTF-8"))
}

/// A variable that switches something on or off.
fn switch(name: &str) -> Result<bool, Failure> {
    match text_variable(name)?.as_deref().map(str::trim) {
        None | Some("0" | "false" | "no") => Ok(false),
        Some("1" | "true" | "yes") => Ok(true),
        Some(other) => Err(invalid(name, other, "expected 1 or 0")),
    }
}

fn seconds(given: Option<f64>, name: &str) -> Result<Option<Duration>, Failure> {
    let from_variable = || match text_variable(name)? {
        Some(text) => {
            values::seconds(text.trim()).map(Some).map_err(|error| invalid(name, &text, error))
        }
        None => Ok(None),
    };
    let seconds = given.map_or_else(from_variable, |given| Ok(Some(given)))?;
    Ok(seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()))
}

/// The given values, else those of a variable, which `split` cuts into several.
fn or_variable<T>(
    given: &[T],
    name: &str,
    split: impl for<'t> Fn(&'t str) -> Vec<&'t str>,
) -> Result<Vec<T>, Failure>
where
    T: Clone + std::str::FromStr<Err = String>,
{
    match text_variable(name)? {
        Some(text) if given.is_empty() => {
            let parts = split(&text).into_iter().map(str::trim).filter(|part| !part.is_empty());
            parts.map(str::parse).collect::<Result<_, _>>().map_err(|error| wrong(name, error))
        }
        _ => Ok(given.to_vec()),
    }
}

fn invalid(name: &str, value: &str, why: &str) -> Failure {
    Failure::usage(format!("invalid {name} {value:?}: {why}"))
}

/// The same without the value, where `why` names its wrong part.
fn wrong(name: &str, why: impl std::fmt::Display) -> Failure {
    Failure::usage(format!("invalid {name}: {why}"))
}
