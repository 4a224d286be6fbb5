//! Asks all endpoints again and again, and listens to those of jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt};
use paceline_wire::Progress;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::address::Address;
use crate::client::{self, Events, Failure};
use crate::clock;
use crate::discover::{Search, probe};
use crate::jobs::{Jobs, Standing};

/// The time between two turns.
const INTERVAL: Duration = Duration::from_secs(2);
/// The least time between two events of a job, however often it sends them.
const EVENT_INTERVAL: Duration = Duration::from_millis(200);
/// The time for an endpoint to close after its last event.
const CLOSE_TIME: Duration = Duration::from_millis(100);
/// For so many turns, what is not a job is not asked again.
const STRANGER_TURNS: u64 = 15;
/// The most pasts that are read at once.
const CONCURRENCY: usize = 4;
/// If nothing was asked for this long, no job is asked either.
const IDLE_TIME: Duration = Duration::from_secs(30);
/// The longest wait for the first turn after an idle time.
const TURN_TIMEOUT: Duration = Duration::from_secs(4);

/// The jobs, shared between the watcher and those who show them.
#[derive(Debug)]
pub(crate) struct Board {
    jobs: Mutex<Jobs>,
    changed: watch::Sender<()>,
    /// When the jobs were asked for last.
    asked: watch::Sender<Instant>,
}

impl Board {
    pub(crate) fn new() -> Self {
        Self {
            jobs: Mutex::default(),
            changed: watch::Sender::new(()),
            asked: watch::Sender::new(clock::now()),
        }
    }

    pub(crate) fn read<T>(&self, work: impl FnOnce(&Jobs) -> T) -> T {
        work(&self.jobs.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Is notified of every change.
    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Keeps the watcher at work for a while. After an idle time, and at the start, this waits for a turn.
    pub(crate) async fn ask(&self) {
        let mut changed = self.subscribe();
        let turns = self.read(|jobs| jobs.turns);
        let before = self.asked.send_replace(clock::now());
        let is_fresh = turns > 0 && before.elapsed() < IDLE_TIME;
        let turn = changed.wait_for(|()| is_fresh || self.read(|jobs| jobs.turns) > turns);
        // After the timeout, older figures are shown.
        drop(timeout(TURN_TIMEOUT, turn).await);
    }

    fn write(&self, work: impl FnOnce(&mut Jobs)) {
        work(&mut self.jobs.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.send_replace(());
    }

    fn take(&self, address: &Address, answer: Result<Progress, Failure>) {
        self.write(|jobs| jobs.take(address, answer, clock::now()));
    }
}

/// Whether the watcher rests while the jobs are not asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    Never,
    WhileUnasked,
}

/// Asks until it is dropped.
pub(crate) async fn run(search: &Search, board: &Arc<Board>, rest: Rest) {
    let mut watcher = Watcher {
        board,
        strangers: BTreeMap::new(),
        followers: BTreeMap::new(),
        tasks: JoinSet::new(),
    };
    let mut asked = board.asked.subscribe();
    loop {
        watcher.turn(search).await;
        sleep(INTERVAL).await;
        let is_idle = rest == Rest::WhileUnasked && asked.borrow().elapsed() > IDLE_TIME;
        if is_idle {
            watcher.stop_following().await;
            // The board keeps the sender.
            drop(asked.wait_for(|at| at.elapsed() < IDLE_TIME).await);
        }
    }
}

struct Watcher<'b> {
    board: &'b Arc<Board>,
    /// What is not a job, with the turn in which to ask again.
    strangers: BTreeMap<Address, u64>,
    /// The tasks that listen to jobs.
    followers: BTreeMap<Address, AbortHandle>,
    tasks: JoinSet<()>,
}

impl Watcher<'_> {
    async fn turn(&mut self, search: &Search) {
        let turn = self.board.read(|jobs| jobs.turns);
        self.board.write(|jobs| jobs.left_out = 0);
        let known = self.board.read(Jobs::addresses);
        self.strangers.retain(|_, until| *until > turn);
        self.followers.retain(|_, follower| !follower.is_finished());
        while self.tasks.try_join_next().is_some() {}
        let mut wanted = search.addresses();
        wanted.extend(known.iter().cloned());
        wanted.retain(|address| !self.strangers.contains_key(address));
        let answers = probe(wanted);
        futures_util::pin_mut!(answers);
        while let Some((address, answer)) = answers.next().await {
            match &answer {
                Ok(_) => self.follow(&address),
                Err(Failure::Silent | Failure::Foreign(_)) if !known.contains(&address) => {
                    self.strangers.insert(address.clone(), turn + STRANGER_TURNS);
                }
                Err(_) => {}
            }
            self.board.take(&address, answer);
        }
        read_pasts(self.board).await;
        self.board.write(|jobs| jobs.turns += 1);
    }

    /// Listens to a job, unless a task does already.
    fn follow(&mut self, address: &Address) {
        if !self.followers.contains_key(address) {
            let task = follow(address.clone(), Arc::clone(self.board));
            self.followers.insert(address.clone(), self.tasks.spawn(task));
        }
    }

    async fn stop_following(&mut self) {
        self.followers.clear();
        self.tasks.shutdown().await;
    }
}

/// Passes on the events of a job until their end. The last one says how the job ended.
async fn follow(address: Address, board: Arc<Board>) {
    let Ok(mut events) = Events::open(&address).await else { return };
    while let Ok(Some(progress)) = events.next().await {
        board.take(&address, Ok(progress));
        sleep(EVENT_INTERVAL).await;
    }
    drop(events);
    sleep(CLOSE_TIME).await;
    let last = client::progress(&address).await;
    board.take(&address, last);
}

/// Reads what is new of the pasts of all jobs that answer.
async fn read_pasts(board: &Board) {
    let wanted: BTreeSet<(Address, String)> = board.read(|jobs| {
        let here = jobs.iter().filter(|job| job.standing == Standing::Answers);
        here.map(|job| (job.address.clone(), job.past.path())).collect()
    });
    let reads = wanted.into_iter().map(|(address, path)| async move {
        // A job without a past, such as one of an older version, has figures alone.
        if let Ok(history) = client::history(&address, &path).await {
            board.write(|jobs| jobs.take_past(&address, &history));
        }
    });
    stream::iter(reads).buffer_unordered(CONCURRENCY).collect::<()>().await;
}

/// Asks all addresses once, and reads the pasts.
pub(crate) async fn once(search: &Search) -> (Board, BTreeMap<Address, Failure>) {
    let board = Board::new();
    let mut failures = BTreeMap::new();
    let answers = probe(search.addresses());
    futures_util::pin_mut!(answers);
    while let Some((address, answer)) = answers.next().await {
        if let Err(failure) = &answer {
            failures.insert(address.clone(), failure.clone());
        }
        board.take(&address, answer);
    }
    read_pasts(&board).await;
    board.write(|jobs| jobs.turns += 1);
    (board, failures)
}

#[cfg(test)]
mod tests;
