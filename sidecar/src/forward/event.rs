//! Events of a job, and which of them a target wants.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use paceline_reporter::wire::Progress;
use serde::Serialize;

/// The version of an event's JSON. Fields are only added within one version.
const SCHEMA: u32 = 1;
/// The most bytes of an event's JSON. The progress is left out of a longer one.
const MAX_JSON: usize = 32 * 1024;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The acceptable loss was reached.
    Acceptable,
    /// The objective was reached.
    Objective,
    /// A step takes much longer than earlier ones did.
    Stalled,
    /// The loss diverges, or is not finite for a while.
    Diverging,
    /// The job finished.
    Finished,
    /// The job ended by an error.
    Failed,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 6] = [
        Self::Acceptable,
        Self::Objective,
        Self::Stalled,
        Self::Diverging,
        Self::Finished,
        Self::Failed,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Acceptable => "acceptable",
            Self::Objective => "objective",
            Self::Stalled => "stalled",
            Self::Diverging => "diverging",
            Self::Finished => "finished",
            Self::Failed => "failed",
        }
    }

    /// What it means, after the job's name.
    fn words(self) -> &'static str {
        match self {
            Self::Acceptable => "has reached its acceptable loss",
            Self::Objective => "has reached its objective",
            Self::Stalled => "has stalled: a step takes much longer than before",
            Self::Diverging => "diverges, or its loss is not finite",
            Self::Finished => "has finished",
            Self::Failed => "has failed",
        }
    }
}

/// Some kinds of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventSet(u8);

impl EventSet {
    /// All kinds.
    pub fn all() -> Self {
        Kind::ALL.into_iter().fold(Self::default(), Self::with)
    }

    /// Whether it has this kind.
    pub fn contains(self, kind: Kind) -> bool {
        self.0 & bit(kind) != 0
    }

    fn with(self, kind: Kind) -> Self {
        Self(self.0 | bit(kind))
    }
}

fn bit(kind: Kind) -> u8 {
    Kind::ALL.iter().position(|one| *one == kind).map_or(0, |at| 1 << at)
}

impl FromStr for EventSet {
    type Err = String;

    /// Reads names with commas between them.
    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',').try_fold(Self::default(), |set, name| {
            let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name.trim());
            kind.map(|kind| set.with(kind)).ok_or_else(|| {
                let names = Kind::ALL.map(Kind::name).join(", ");
                format!("invalid event \"{name}\": expected any of {names}")
            })
        })
    }
}

impl fmt::Display for EventSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = Kind::ALL.into_iter().filter(|kind| self.contains(*kind));
        f.write_str(&kinds.map(Kind::name).collect::<Vec<_>>().join(","))
    }
}

/// An event of a job.
#[derive(Clone, Debug)]
pub struct Event {
    /// What happened.
    pub kind: Kind,
    /// The reading that showed it.
    pub progress: Arc<Progress>,
}

impl Event {
    /// The event as one line of JSON, of bounded length.
    pub fn json(&self) -> String {
        let progress = &*self.progress;
        let step = progress.step.map(|step| format!(" at step {step}")).unwrap_or_default();
        let loss = progress.eval.value.map(|loss| format!(", loss {loss}")).unwrap_or_default();
        let mut body = Body {
            schema: SCHEMA,
            event: self.kind,
            at: progress.now,
            job: &progress.job,
            instance: &progress.instance,
            text: format!("{} {}{step}{loss}", progress.job, self.kind.words()),
            progress: Some(progress),
        };
        // Serializing a plain structure cannot fail.
        let whole = serde_json::to_string(&body).unwrap_or_default();
        if whole.len() <= MAX_JSON {
            return whole;
        }
        body.progress = None;
        let short = |text: &str| text.chars().take(256).collect::<String>();
        let (job, text) = (short(body.job), short(&body.text));
        serde_json::to_string(&Body { job: &job, text, ..body }).unwrap_or_default()
    }
}

#[derive(Serialize)]
struct Body<'p> {
    schema: u32,
    event: Kind,
    /// Unix seconds.
    at: f64,
    job: &'p str,
    instance: &'p str,
    /// A sentence for people; chat programs show this field of a webhook.
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<&'p Progress>,
}
