//! The lines of the log: their format, and how many of them one job may cause.

use std::fmt::{self, Debug};
use std::sync::{Mutex, PoisonError};

use paceline_api::budget::Budgets;
use paceline_api::clock::Clock;
use paceline_api::plain::cut;
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{
    self, FormatEvent, FormatFields, JsonFields, Writer, debug_fn,
};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, MakeWriter};
use tracing_subscriber::layer::Layer;
use tracing_subscriber::registry::LookupSpan;

use super::Format;

/// The most characters of one field of a line.
const MAX_FIELD: usize = 2000;
/// The fields that name what a line is about.
const SUBJECTS: [&str; 2] = ["job", "container"];

/// The layer that writes lines in a format.
pub(super) fn layer<S, W>(format: Format, ansi: bool, writer: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    // A line is lost if its reader is gone, for example on a closed terminal. Reporting that
    // error to the same place would panic and leave limits behind.
    let lines = tracing_subscriber::fmt::layer().log_internal_errors(false).with_writer(writer);
    match format {
        Format::Text => {
            // Foreign text must not begin a line of its own, nor control a terminal.
            let fields = debug_fn(|to, field, value| {
                let text = cut(&format!("{value:?}"), MAX_FIELD);
                if field.name() == "message" {
                    to.write_str(&text)
                } else {
                    write!(to, "{}={text}", field.name())
                }
            });
            let fields = tracing_subscriber::field::MakeExt::delimited(fields, " ");
            let line = format::format().with_target(false);
            let lines = lines.with_ansi(ansi).fmt_fields(fields);
            lines.event_format(Limited::new(line, format)).boxed()
        }
        Format::Json => {
            let line = format::json().flatten_event(true).with_current_span(false);
            let line = line.with_span_list(false);
            let lines = lines.fmt_fields(JsonFields::new());
            lines.event_format(Limited::new(line, format)).boxed()
        }
    }
}

/// A line of our own, written past the log's layers.
pub(super) fn note(format: Format, message: &str, left_out: u64) -> String {
    let mut time = String::new();
    if SystemTime.format_time(&mut Writer::new(&mut time)).is_err() {
        time.clear();
    }
    match format {
        Format::Text => format!("{time}  WARN {message}\n"),
        Format::Json => {
            let line = json!({
                "timestamp": time, "level": "WARN", "message": message, "left_out": left_out,
                "target": "paceline_allocator::log",
            });
            format!("{line}\n")
        }
    }
}

/// A format whose lines about one job are limited in number.
struct Limited<F> {
    line: F,
    format: Format,
    clock: Clock,
    budgets: Mutex<Budgets>,
}

impl<F> Limited<F> {
    fn new(line: F, format: Format) -> Self {
        Self { line, format, clock: Clock::start(), budgets: Mutex::default() }
    }
}

impl<S, N, F> FormatEvent<S, N> for Limited<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut subject = Subject::default();
        event.record(&mut subject);
        if let Some(name) = &subject.0 {
            let mut budgets = self.budgets.lock().unwrap_or_else(PoisonError::into_inner);
            match budgets.take(name, self.clock.now()) {
                None => return Ok(()),
                Some(0) => {}
                Some(count) => {
                    let name = cut(name, MAX_FIELD);
                    let message = format!("{count} lines about {name} were left out: too many");
                    writer.write_str(&note(self.format, &message, count))?;
                }
            }
        }
        self.line.format_event(context, writer, event)
    }
}

/// What a line is about.
#[derive(Default)]
struct Subject(Option<String>);

impl Visit for Subject {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if SUBJECTS.contains(&field.name()) {
            self.0.get_or_insert_with(|| format!("{value:?}"));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if SUBJECTS.contains(&field.name()) {
            self.0.get_or_insert_with(|| value.to_owned());
        }
    }
}
