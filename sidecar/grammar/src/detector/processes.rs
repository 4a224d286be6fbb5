//! Processes that print the same losses without a rank.

use paceline_lines::observation::{Observation, Phase};

/// Losses of others after which the leading process is given up, besides two for each of them.
const PATIENCE: usize = 8;
/// Maximum number of processes that are distinguished.
const MAX_PROCESSES: usize = 256;

/// Follows the process whose lines count. Others print the same losses, or only their part of them.
#[derive(Debug, Default)]
pub(super) struct Processes {
    leader: Option<String>,
    /// Checksums of the others' names, and how many losses they printed, since the leader's last.
    others: Vec<u32>,
    losses: usize,
}

impl Processes {
    /// Whether the observation of `process` counts. After a restart another process leads.
    pub(super) fn leads(&mut self, process: &str, observation: &Observation) -> bool {
        let trains = observation.losses.iter().any(|loss| loss.phase == Phase::Train);
        let is_leader = self.leader.as_deref().is_none_or(|leader| leader == process);
        if is_leader {
            if trains {
                self.lead(process);
            }
            return true;
        }
        if !trains {
            return false;
        }
        self.losses += 1;
        let name = crc32c::crc32c(process.as_bytes());
        if self.others.len() < MAX_PROCESSES && !self.others.contains(&name) {
            self.others.push(name);
        }
        if self.losses <= PATIENCE + 2 * self.others.len() {
            return false;
        }
        self.lead(process);
        true
    }

    fn lead(&mut self, process: &str) {
        if self.leader.as_deref() != Some(process) {
            self.leader = Some(process.to_owned());
        }
        self.others.clear();
        self.losses = 0;
    }
}

#[cfg(test)]
mod tests {
    use paceline_lines::observation::{Loss, Span};

    use super::*;

    #[test]
    fn first_process_leads_until_it_is_silent() {
        let loss =
            Loss { name: "loss".to_owned(), phase: Phase::Train, span: Span::Step, value: 1.0 };
        let observation = Observation { losses: vec![loss], ..Observation::default() };
        let mut processes = Processes::default();
        for _ in 0..20 {
            assert!(processes.leads("a", &observation));
            assert!(!processes.leads("b", &observation) && !processes.leads("c", &observation));
        }
        let lost = (0..100).take_while(|_| !processes.leads("d", &observation)).count();
        assert!((8..20).contains(&lost), "{lost}");
        assert!(!processes.leads("a", &observation));
    }
}
