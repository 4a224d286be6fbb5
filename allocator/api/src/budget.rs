//! How many lines each job may cause in the log and in the audit log. A job that changes all the time
//! must not fill the disk, nor push the entries of others out of a log of bounded size.

use std::collections::BTreeMap;

use paceline_policy::Moment;

/// How many lines a job may cause at once …
const BURST: u32 = 240;
/// … and how many seconds it takes until one more is allowed.
const INTERVAL: f64 = 0.5;
/// The most names that have a budget of their own. Further ones share one.
const MAX_NAMES: usize = 1024;

/// The budgets of all jobs, by their names.
#[derive(Debug, Default)]
pub struct Budgets {
    own: BTreeMap<String, Budget>,
    shared: Budget,
}

#[derive(Clone, Copy, Debug, Default)]
struct Budget {
    /// When all used lines are available again.
    regained: Option<Moment>,
    left_out: u64,
}

impl Budgets {
    /// Takes one line about `name`. Returns how many lines about it were left out since the last one, or
    /// `None` if this one must be left out as well.
    pub fn take(&mut self, name: &str, now: Moment) -> Option<u64> {
        if self.own.len() >= MAX_NAMES && !self.own.contains_key(name) {
            self.own.retain(|_, budget| !budget.is_whole(now));
        }
        if let Some(budget) = self.own.get_mut(name) {
            return budget.take(now);
        }
        if self.own.len() >= MAX_NAMES {
            return self.shared.take(now);
        }
        self.own.entry(name.to_owned()).or_default().take(now)
    }

    /// Takes the names whose last lines were left out, with their numbers.
    pub fn take_left_out(&mut self) -> Vec<(String, u64)> {
        let left_out = |(name, budget): (&String, &mut Budget)| {
            let count = std::mem::take(&mut budget.left_out);
            (count > 0).then(|| (name.clone(), count))
        };
        self.own.iter_mut().filter_map(left_out).collect()
    }
}

impl Budget {
    fn take(&mut self, now: Moment) -> Option<u64> {
        let regained = self.regained.map_or(now, |regained| regained.max(now));
        if regained.seconds_since(now) > INTERVAL * (f64::from(BURST) - 1.0) {
            self.left_out += 1;
            return None;
        }
        self.regained = Some(regained.after(INTERVAL));
        Some(std::mem::take(&mut self.left_out))
    }

    fn is_whole(&self, now: Moment) -> bool {
        self.left_out == 0 && self.regained.is_none_or(|regained| regained <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noisy_job_is_limited_and_its_left_out_lines_counted() {
        let (mut budgets, began) = (Budgets::default(), Moment::from_seconds(5.0));
        let written = (0..10_000).filter(|_| budgets.take("noisy", began).is_some()).count();
        assert_eq!(written, 240);
        assert_eq!(budgets.take("quiet", began), Some(0), "another job has its own budget");
        assert_eq!(budgets.take("noisy", began.after(INTERVAL)), Some(10_000 - 240));
        assert_eq!(budgets.take("noisy", began.after(INTERVAL)), None);
        assert_eq!(budgets.take_left_out(), [("noisy".to_owned(), 1)]);
        assert!(budgets.take_left_out().is_empty());
        let day = began.after(86_400.0);
        let written = (0..10_000).filter(|_| budgets.take("noisy", day).is_some()).count();
        assert_eq!(written, 240, "no more than a burst is saved up");
    }

    #[test]
    fn names_without_end_share_one_budget_and_take_bounded_memory() {
        let (mut budgets, began) = (Budgets::default(), Moment::from_seconds(5.0));
        let written = (0..10_000).filter(|n| budgets.take(&n.to_string(), began).is_some()).count();
        assert_eq!((written, budgets.own.len()), (MAX_NAMES + 240, MAX_NAMES));
        assert_eq!(
            budgets.take("new", began.after(INTERVAL)),
            Some(0),
            "unused budgets are forgotten"
        );
        assert_eq!(budgets.own.len(), 1);
    }
}
