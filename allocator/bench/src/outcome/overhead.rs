//! The cost of control, from the audit log and the samples.

use std::collections::BTreeMap;

use paceline_api::audit::{Entry, Record};
use paceline_policy::unit::{count, counter};

use super::observed::Observed;

/// What an allocator did in one run, and what it cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Overhead {
    /// Runs of the policy.
    pub(super) decisions: f64,
    /// Limits written, by job.
    pub(super) writes: BTreeMap<String, f64>,
    /// Decisions that led to no write: the limit in force was close enough, or the job was held.
    pub(super) skipped: f64,
    /// Writes that failed.
    pub(super) failed: f64,
    /// The allocator's CPU time for each decision, in seconds.
    pub(super) cpu: Option<f64>,
    /// The time spent writing limits for each decision, in seconds.
    pub(super) writing: Option<f64>,
    /// The mean time in seconds from a job's arrival or end to the first limit of the decision that
    /// followed.
    pub(super) reaction: Option<f64>,
}

impl Overhead {
    /// The overhead of a run; `None` without an audit log.
    pub(super) fn from_run(observed: &Observed<'_>) -> Option<Self> {
        let log = &observed.log;
        if log.is_empty() {
            return None;
        }
        let mut found = Self { reaction: reaction(log), ..Self::default() };
        let mut choices = 0.0;
        let mut last = 0;
        for Record { entry, .. } in log {
            if let Entry::Decided { number, .. } = entry {
                choices += 1.0;
                found.decisions += if *number == last { 0.0 } else { 1.0 };
                last = *number;
            } else if let Entry::Limited { job, .. } = entry {
                *found.writes.entry(job.clone()).or_default() += 1.0;
            } else if let Entry::Failed { .. } = entry {
                found.failed += 1.0;
            }
        }
        found.skipped = f64::max(choices - found.written() - found.failed, 0.0);
        let cost = observed.recorded.samples.iter().rev().find_map(|sample| sample.cost);
        if found.decisions > 0.0 {
            found.cpu = cost.map(|cost| cost.cpu_seconds / found.decisions);
            found.writing = cost.map(|cost| cost.write_seconds / found.decisions);
        }
        Some(found)
    }

    /// Limits written in all.
    pub(super) fn written(&self) -> f64 {
        self.writes.values().fold(0.0, |sum, writes| sum + writes)
    }
}

/// The mean over the arrivals and ends whose next decision wrote a limit before the decision after it.
fn reaction(log: &[Record]) -> Option<f64> {
    let mut delays = Vec::new();
    let mut event: Option<(f64, Option<u64>)> = None;
    for Record { at, entry, .. } in log {
        if matches!(entry, Entry::Appeared { .. } | Entry::Gone { .. }) {
            event = Some((*at, None));
        } else if let Entry::Decided { number, .. } = entry {
            // Limits of a later decision are not a reaction to this event.
            event = event.and_then(|(since, by)| {
                let by = by.unwrap_or(*number);
                (by == *number).then_some((since, Some(by)))
            });
        } else if matches!(entry, Entry::Limited { .. })
            && let Some((since, Some(_))) = event
        {
            delays.push(at - since);
            event = None;
        }
    }
    (!delays.is_empty()).then(|| delays.iter().sum::<f64>() / count(delays.len()))
}

/// The mean and the largest number of jobs at once, over the time with at least one job.
pub(super) fn at_once(spans: &[(f64, f64)]) -> Option<(f64, f64)> {
    let mut edges: Vec<(f64, i64)> =
        spans.iter().flat_map(|(from, to)| [(*from, 1), (*to, -1)]).collect();
    // At the same moment, ends count before arrivals.
    edges.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut here, mut most, mut area, mut busy, mut last) = (0_i64, 0_i64, 0.0, 0.0, 0.0);
    for (at, change) in edges {
        let jobs = counter(here.unsigned_abs());
        area += jobs * (at - last);
        busy += if here > 0 { at - last } else { 0.0 };
        last = at;
        here += change;
        most = most.max(here);
    }
    (busy > 0.0).then(|| (area / busy, counter(most.unsigned_abs())))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::example::entries;
    use super::*;

    fn log(lines: &[(f64, &str)]) -> Vec<Record> {
        let none = "0".repeat(64);
        let line = |(at, rest): &(f64, &str)| {
            format!(r#"{{"seq":1,"at":{at},"prev":"{none}","hash":"{none}",{rest}}}"#)
        };
        let text: Vec<String> = lines.iter().map(line).collect();
        entries(&text.join("\n"))
    }

    const APPEARED: &str = r#""what":"appeared","job":"a","container":"c""#;
    const LIMITED: &str = r#""what":"limited","job":"a","container":"c","from":"100.0 %","to":"25.0 %","why":"w","seconds":0.03"#;

    fn decided(number: u64) -> String {
        format!(
            r#""what":"decided","number":{number},"job":"a","class":"-","score":null,"chosen":0.5,"why":"w""#
        )
    }

    #[test]
    fn reaction_lasts_from_an_event_to_its_limit() {
        let (one, two) = (decided(1), decided(2));
        let answered = log(&[(1.0, APPEARED), (1.1, &one), (1.15, LIMITED), (9.0, LIMITED)]);
        assert!((reaction(&answered).unwrap() - 0.15).abs() < 1e-9);
        let late = log(&[(1.0, APPEARED), (1.1, &one), (5.0, &two), (5.1, LIMITED)]);
        assert_eq!(reaction(&late), None, "the second decision was not a reaction");
        assert_eq!(reaction(&log(&[(1.0, LIMITED)])), None);
    }

    #[test]
    fn jobs_at_once_are_averaged_over_busy_time() {
        let (mean, most) = at_once(&[(0.0, 10.0), (5.0, 10.0), (20.0, 25.0)]).unwrap();
        assert!((mean - 20.0 / 15.0).abs() < 1e-9 && (most - 2.0).abs() < 1e-9, "{mean}, {most}");
        assert_eq!(at_once(&[(0.0, 5.0), (5.0, 9.0)]).unwrap(), (1.0, 1.0));
        assert_eq!(at_once(&[]), None);
    }

    proptest! {
        #[test]
        fn mean_of_jobs_at_once_is_at_most_the_maximum(spans in prop::collection::vec((0.0..100.0, 0.1..50.0), 1..9)) {
            let spans: Vec<(f64, f64)> = spans.into_iter().map(|(at, long)| (at, at + long)).collect();
            let (mean, most) = at_once(&spans).unwrap();
            prop_assert!((1.0..=most + 1e-9).contains(&mean), "{mean} of {most}");
        }
    }
}
