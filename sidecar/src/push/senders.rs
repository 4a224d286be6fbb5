//! Which reports of each sender were taken.
//!
//! A sender whose request got no answer in time sends its reports again. They may have been taken: a busy
//! or paused sidecar answers late.

use std::collections::VecDeque;

use super::report::{Mark, Report};

/// Number of remembered senders: a process of a job is one. The one that was silent longest is forgotten.
const MAX_SENDERS: usize = 256;

/// The last report of each sender.
#[derive(Debug, Default)]
pub struct Senders(VecDeque<Mark>);

impl Senders {
    /// Keeps the reports that were not taken before. Those without a mark always count as new.
    pub fn keep_new(&mut self, reports: &mut Vec<Report>) {
        reports.retain(|report| report.mark.is_none_or(|mark| self.is_new(mark)));
    }

    fn is_new(&mut self, mark: Mark) -> bool {
        let known = self.0.iter().rposition(|last| last.sender == mark.sender);
        let last = known.and_then(|at| self.0.remove(at));
        let is_new = last.is_none_or(|last| mark.number > last.number);
        if self.0.len() == MAX_SENDERS {
            self.0.pop_front();
        }
        self.0.push_back(if is_new { mark } else { last.unwrap_or(mark) });
        is_new
    }
}

#[cfg(test)]
mod tests {
    use paceline_lines::observation::Observation;

    use super::*;

    fn kept(senders: &mut Senders, numbers: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let report = |(sender, number): &(u64, u64)| Report {
            observation: Observation::default(),
            mark: Some(Mark { sender: *sender, number: *number }),
        };
        let mut reports = numbers.iter().map(report).collect();
        senders.keep_new(&mut reports);
        let marks = reports.iter().filter_map(|report| report.mark);
        marks.map(|mark| (mark.sender, mark.number)).collect()
    }

    #[test]
    fn reports_that_are_sent_again_are_left_out() {
        let mut senders = Senders::default();
        assert_eq!(kept(&mut senders, &[(7, 1), (7, 2)]), [(7, 1), (7, 2)]);
        assert_eq!(kept(&mut senders, &[(7, 1), (9, 1), (7, 2), (7, 3)]), [(9, 1), (7, 3)]);
        assert_eq!(kept(&mut senders, &[(9, 1), (7, 3), (9, 5)]), [(9, 5)]);
    }

    #[test]
    fn reports_without_a_mark_are_always_new() {
        let mut reports = vec![Report { observation: Observation::default(), mark: None }; 2];
        Senders::default().keep_new(&mut reports);
        assert_eq!(reports.len(), 2);
    }

    #[test]
    fn memory_is_bounded_and_the_latest_senders_are_known() {
        let mut senders = Senders::default();
        for sender in 0..1_000 {
            assert_eq!(kept(&mut senders, &[(sender, 1)]).len(), 1);
        }
        assert_eq!(senders.0.len(), MAX_SENDERS);
        assert_eq!(kept(&mut senders, &[(999, 1), (0, 1)]), [(0, 1)]);
    }
}
