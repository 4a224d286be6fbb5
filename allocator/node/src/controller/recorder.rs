//! Records a run: frames, samples and the audit log. Also gives each frame to the shadow policies.
//!
//! The entries that one job causes are limited, so that it does not push those of others out of the
//! log. What was left out is counted in the log.

use paceline_api::audit::{Audit, Entry};
use paceline_api::budget::Budgets;
use paceline_api::clock::{Clock, unix_seconds};
use paceline_api::json_lines::JsonLines;
use paceline_api::live::snapshot::DecisionView;
use paceline_policy::{Decision, Frame, JobDecision, JobId, Moment};

use super::{Records, Shadow};

/// The records of a run, its shadow policies and its latest decision.
#[derive(Debug)]
pub(super) struct Recorder {
    records: Records,
    clock: Clock,
    budgets: Budgets,
    shadows: Vec<Shadow>,
    latest: Option<Decided>,
}

/// The latest decision.
#[derive(Debug)]
pub(super) struct Decided {
    pub(super) view: DecisionView,
    decision: Decision,
}

impl Decided {
    /// The decision about a job, and its time in Unix seconds.
    pub(super) fn about(&self, job: &JobId) -> Option<(f64, &JobDecision)> {
        Some((self.view.at, self.decision.jobs.get(job)?))
    }
}

impl Recorder {
    pub(super) fn new(records: Records) -> Self {
        let (clock, budgets) = (Clock::start(), Budgets::default());
        Self { records, clock, budgets, shadows: Vec::new(), latest: None }
    }

    /// Replaces the shadow policies. Those that stay keep their state.
    pub(super) fn watch_by(&mut self, shadows: Vec<Shadow>) {
        let mut before = std::mem::take(&mut self.shadows);
        let kept = |new: Shadow| {
            let same = before.iter().position(|one| one.policy() == new.policy());
            same.map_or(new, |at| before.swap_remove(at))
        };
        self.shadows = shadows.into_iter().map(kept).collect();
    }

    /// The shadow policies.
    pub(super) fn shadows(&self) -> &[Shadow] {
        &self.shadows
    }

    /// The latest decision.
    pub(super) fn latest(&self) -> Option<&Decided> {
        self.latest.as_ref()
    }

    /// Appends an entry to the audit log.
    pub(super) fn write(&mut self, entry: &Entry) {
        let Some(audit) = &mut self.records.audit else { return };
        if matches!(entry, Entry::Ended { .. }) {
            for (job, count) in self.budgets.take_left_out() {
                audit.write(&Entry::LeftOut { job, count });
            }
        }
        write_within_budget(audit, &mut self.budgets, self.clock.now(), entry);
    }

    /// The file of samples, if there is one.
    pub(super) fn samples(&mut self) -> Option<&mut JsonLines> {
        self.records.samples.as_mut()
    }

    /// Records a decision and the frame from which it was made.
    pub(super) fn decided(&mut self, frame: &Frame, decision: Decision) {
        if let Some(frames) = &mut self.records.frames {
            frames.write(frame);
        }
        for shadow in &mut self.shadows {
            shadow.watch(frame, &decision);
        }
        for (job, of) in &decision.jobs {
            let limit = decision.limits.get(job).map(ToString::to_string).unwrap_or_default();
            tracing::debug!(%job, class = of.class, limit, why = %of.why, "decided");
        }
        let number = self.latest.as_ref().map_or(0, |decided| decided.view.number) + 1;
        if let Some(audit) = &mut self.records.audit {
            for entry in Entry::from_decision(number, &decision) {
                write_within_budget(audit, &mut self.budgets, self.clock.now(), &entry);
            }
        }
        let view = DecisionView { number, at: unix_seconds(), interval: decision.interval };
        self.latest = Some(Decided { view, decision });
    }
}

/// Appends an entry, unless the job or container that it is about has caused too many.
fn write_within_budget(audit: &mut Audit, budgets: &mut Budgets, now: Moment, entry: &Entry) {
    let about = entry.job().or(entry.container()).filter(|_| may_be_left_out(entry));
    if let Some(about) = about {
        match budgets.take(about, now) {
            None => return,
            Some(0) => {}
            Some(count) => audit.write(&Entry::LeftOut { job: about.to_owned(), count }),
        }
    }
    audit.write(entry);
}

/// Whether a job can cause entries of this kind again and again.
fn may_be_left_out(entry: &Entry) -> bool {
    matches!(
        entry,
        Entry::Appeared { .. }
            | Entry::Gone { .. }
            | Entry::Decided { .. }
            | Entry::Limited { .. }
            | Entry::Failed { .. }
            | Entry::Restored { .. }
            | Entry::Drifted { .. }
    )
}

#[cfg(test)]
mod tests {
    use paceline_api::audit::read;

    use super::*;

    #[test]
    fn restless_job_does_not_fill_the_log_and_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let audit = Some(Audit::open(folder.path()).unwrap());
        let mut recorder = Recorder::new(Records { audit, ..Records::default() });
        let gone = |job: &str| Entry::Gone { job: job.to_owned(), container: job.to_owned() };
        recorder.write(&gone("quiet"));
        for _ in 0..2000 {
            recorder.write(&gone("restless"));
        }
        let ended = Entry::Terminated { job: "restless".to_owned(), container: "c".to_owned() };
        recorder.write(&ended);
        recorder.write(&gone("quiet"));
        recorder.write(&Entry::Ended { left: 0 });
        let entries: Vec<Entry> =
            read::last(folder.path(), 5000).unwrap().into_iter().map(|line| line.entry).collect();
        let is_restless = |entry: &&Entry| **entry == gone("restless");
        let written = entries.iter().filter(is_restless).count();
        assert!((200..1000).contains(&written), "{written}");
        let counted = entries.iter().filter_map(|entry| {
            let Entry::LeftOut { job, count } = entry else { return None };
            usize::try_from(*count).ok().filter(|_| job == "restless")
        });
        assert_eq!(written + counted.sum::<usize>(), 2000);
        assert_eq!(entries.iter().filter(|entry| **entry == gone("quiet")).count(), 2);
        assert!(entries.contains(&ended), "an end is never left out");
    }
}
