//! The option, and the variable that replaces it.

use std::env;
use std::ffi::OsString;
use std::sync::Arc;

use clap::Args;
use paceline_otlp::Settings;

use crate::cli::{Failure, chain};
use crate::forward::Target;
use crate::forward::otlp::{Otlp, OtlpError};
use crate::job::Job;
use crate::say::say;

/// Whether metrics are sent.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Forward")]
pub(in crate::cli) struct OtlpArgs {
    /// Send the metrics to an OpenTelemetry receiver, by OTLP over HTTP. The `OTEL_EXPORTER_OTLP_…`
    /// variables say where to [env: `PACELINE_OTLP=1`]
    #[arg(long)]
    otlp: bool,
}

/// A receiver whose settings were checked.
#[derive(Debug)]
pub(in crate::cli) struct Receiver(Settings);

impl OtlpArgs {
    /// Checks the settings; `None` if no metrics are to be sent or a variable switches them off. A job's own
    /// variables are there for its own metrics, so they alone start nothing.
    pub(in crate::cli) fn plan(self) -> Result<Option<Receiver>, Failure> {
        if !self.otlp && !is_on(env::var_os("PACELINE_OTLP"))? {
            return Ok(None);
        }
        let settings = Settings::from_env(|name| env::var_os(name));
        let settings = settings.map_err(|error| Failure::usage(chain(&error)))?;
        if settings.is_none() {
            say(format_args!(
                "--otlp has no effect: OTEL_SDK_DISABLED or OTEL_METRICS_EXPORTER disables metrics"
            ));
        }
        Ok(settings.map(Receiver))
    }
}

impl Receiver {
    /// The target for a job's metrics; `None` if reporting is switched off.
    pub(in crate::cli) fn target(
        &self,
        job: &Arc<Job>,
    ) -> Result<Option<Box<dyn Target>>, Failure> {
        let Some((meter, progress)) = job.meter().zip(job.progress()) else { return Ok(None) };
        let target = Otlp::new(&self.0, meter, &progress);
        let target = target.map_err(|error| match error {
            OtlpError::Setting(error) => Failure::usage(chain(&error)),
            OtlpError::Runtime(_) => Failure::running(chain(&error)),
        })?;
        Ok(Some(Box::new(target)))
    }
}

fn is_on(variable: Option<OsString>) -> Result<bool, Failure> {
    let text = variable.unwrap_or_default();
    let text = text.to_string_lossy();
    match text.trim() {
        "" | "0" | "false" | "no" => Ok(false),
        "1" | "true" | "yes" => Ok(true),
        other => Err(Failure::usage(format!("invalid PACELINE_OTLP \"{other}\": expected 1 or 0"))),
    }
}
