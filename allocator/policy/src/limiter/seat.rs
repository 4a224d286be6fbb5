use super::guards::Guards;
use super::verdict::Verdict;

/// One job as of the moment before the one that is judged, and now. Both stand in one place: to go
/// on to the next moment moves nothing else.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seat {
    pub(super) before: Option<Account>,
    pub(super) now: Option<Account>,
    /// In which round it was judged last.
    round: u64,
}

/// One job as of the last decision and the last look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    pub(super) verdict: Verdict,
    pub(super) guards: Guards,
}

impl Seat {
    /// The next moment begins.
    pub(super) fn turn(&mut self) {
        self.before = self.now;
    }

    pub(super) fn judge(&mut self, round: u64, account: Account) {
        (self.now, self.round) = (Some(account), round);
    }

    /// Ends a round: who was not judged in it does not stand any more. Returns whether anything is
    /// known of the job.
    pub(super) fn end(&mut self, round: u64) -> bool {
        if self.round != round {
            self.now = None;
        }
        self.now.is_some() || self.before.is_some()
    }
}
