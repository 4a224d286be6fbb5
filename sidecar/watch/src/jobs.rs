//! The jobs that were found, also those that have ended since.

use std::collections::BTreeSet;
use std::time::Instant;

use paceline_wire::{History, Progress, State};

use crate::address::Address;
use crate::client::Failure;
use crate::past::Past;

/// The most jobs. Of more, those that ended first are forgotten, and new ones are counted only.
const MAX_JOBS: usize = 128;

/// Whether a job answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It answered when it was asked last.
    Answers,
    /// Something listens at its address, and does not answer in time.
    Silent,
    /// Its endpoint is gone.
    Gone,
}

/// A process that reports: a job, or a rank of one.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) address: Address,
    pub(crate) progress: Progress,
    pub(crate) past: Past,
    pub(crate) standing: Standing,
    /// When [`Job::progress`] arrived.
    pub(crate) seen: Instant,
}

impl Job {
    /// Whether nothing more is expected of it.
    pub(crate) fn is_over(&self) -> bool {
        self.standing == Standing::Gone || has_ended(&self.progress)
    }
}

fn has_ended(progress: &Progress) -> bool {
    matches!(progress.state, State::Finished | State::Failed)
}

/// The ranks of a job, the lowest first; a job without ranks has one member.
#[derive(Clone, Debug)]
pub(crate) struct Group<'j> {
    /// The member that stands for all.
    pub(crate) head: &'j Job,
    pub(crate) ranks: Vec<&'j Job>,
}

/// All jobs, in the order in which they were found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Jobs {
    found: Vec<Job>,
    /// Jobs beyond [`MAX_JOBS`] in the last turn.
    pub(crate) left_out: usize,
    /// How often all addresses have been asked.
    pub(crate) turns: u64,
}

impl Jobs {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Job> {
        self.found.iter()
    }

    /// The job with a key, which answers or was the last one at its address.
    pub(crate) fn by_key(&self, key: &str) -> Option<&Job> {
        self.found.iter().rev().find(|job| job.address.key() == key)
    }

    /// The addresses of the jobs that are not gone.
    pub(crate) fn addresses(&self) -> BTreeSet<Address> {
        let here = self.found.iter().filter(|job| job.standing != Standing::Gone);
        here.map(|job| job.address.clone()).collect()
    }

    /// Takes what an address answered.
    pub(crate) fn take(
        &mut self,
        address: &Address,
        answer: Result<Progress, Failure>,
        now: Instant,
    ) {
        match answer {
            Ok(progress) => self.seen(address, progress, now),
            Err(failure) => {
                let standing = match failure {
                    Failure::Silent => Standing::Silent,
                    Failure::Absent(_) | Failure::Foreign(_) => Standing::Gone,
                };
                let here = self.found.iter_mut().filter(|job| job.address == *address);
                here.filter(|job| job.standing != Standing::Gone)
                    .for_each(|job| job.standing = standing);
            }
        }
    }

    fn seen(&mut self, address: &Address, progress: Progress, now: Instant) {
        // Another process at the address: the one before has gone.
        let others = self
            .found
            .iter_mut()
            .filter(|job| job.address == *address && job.progress.instance != progress.instance);
        others.for_each(|job| job.standing = Standing::Gone);
        let known = self.found.iter_mut().find(|job| job.progress.instance == progress.instance);
        if let Some(job) = known {
            // One endpoint may have two addresses, such as localhost and 127.0.0.1.
            if job.address != *address && job.standing == Standing::Answers {
                return;
            }
            job.address = address.clone();
            job.standing = Standing::Answers;
            // An answer may arrive after the event that followed it.
            if !has_ended(&job.progress) || has_ended(&progress) {
                job.progress = progress;
                job.seen = now;
            }
            return;
        }
        if self.found.len() >= MAX_JOBS {
            let Some(gone) = self.found.iter().position(|job| job.standing == Standing::Gone)
            else {
                self.left_out += 1;
                return;
            };
            self.found.remove(gone);
        }
        let (address, past) = (address.clone(), Past::default());
        self.found.push(Job { address, progress, past, standing: Standing::Answers, seen: now });
    }

    /// Takes the past of the job at an address.
    pub(crate) fn take_past(&mut self, address: &Address, history: &History) {
        let mut here = self.found.iter_mut().filter(|job| job.address == *address);
        if let Some(job) = here.find(|job| job.progress.instance == history.instance) {
            job.past.take(history);
        }
    }

    /// All jobs with their ranks, in the order of their starts: those that are over last.
    pub(crate) fn groups(&self) -> Vec<Group<'_>> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        for job in &self.found {
            match groups.iter_mut().find(|group| group.takes(job)) {
                Some(group) => group.add(job),
                None => groups.push(Group { head: job, ranks: vec![job] }),
            }
        }
        groups.sort_by(|one, other| {
            let started = |group: &Group<'_>| group.head.progress.started_at;
            one.is_over().cmp(&other.is_over()).then(started(one).total_cmp(&started(other)))
        });
        groups
    }
}

impl<'j> Group<'j> {
    /// Whether nothing more is expected of any rank.
    pub(crate) fn is_over(&self) -> bool {
        self.ranks.iter().all(|rank| rank.is_over())
    }

    /// Whether a job is a further rank of this one: of the same name and size, with a number that is not
    /// taken. So the next run of a job begins a group of its own.
    fn takes(&self, job: &Job) -> bool {
        let (one, other) = (&self.head.progress, &job.progress);
        let (Some(own), Some(rank)) = (one.rank, other.rank) else { return false };
        let is_free = self
            .ranks
            .iter()
            .all(|member| member.progress.rank.is_some_and(|taken| taken.global != rank.global));
        one.job == other.job && own.world == rank.world && is_free
    }

    fn add(&mut self, job: &'j Job) {
        self.ranks.push(job);
        self.ranks.sort_by_key(|job| job.progress.rank.map(|rank| rank.global));
        if let Some(lowest) = self.ranks.first() {
            self.head = lowest;
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
