//! Keeps what the reporter lends between two calls of Burn: a running batch, an evaluation.

use std::convert::Infallible;
use std::future::poll_fn;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use paceline_reporter::{Batch, Evaluation, Reporter};

/// What the training does next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Turn {
    /// It begins a batch.
    Train,
    /// It ends a batch, with its loss if that is known, and begins the next.
    Next(Option<f64>),
    /// It looks at held-out data.
    Evaluate,
    /// Neither: what began and has not ended does not count.
    Rest,
}

/// Tells a reporter how the time of a training is divided.
///
/// The reporter's batches and evaluations borrow it, so they cannot lie in a struct beside it. They
/// can live in a future, which is polled once per turn and then waits for the next one. It never
/// needs waking, so it needs no executor and no thread.
pub(crate) struct Narrator {
    next: NextTurn,
    tale: Pin<Box<dyn Future<Output = Infallible> + Send + Sync>>,
}

impl Narrator {
    pub(crate) fn new(reporter: Reporter) -> Self {
        let next = NextTurn::default();
        Self { tale: Box::pin(tell(reporter, next.clone())), next }
    }

    /// Takes a turn; it has been reported when this returns.
    pub(crate) fn turn(&mut self, turn: Turn) {
        self.next.set(turn);
        let Poll::Pending = self.tale.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }
}

async fn tell(reporter: Reporter, turns: NextTurn) -> Infallible {
    let mut phase = Phase::Resting;
    loop {
        let turn = turns.get().await;
        if let (Phase::Training(batch), Turn::Next(loss)) = (phase, turn) {
            let batch = ManuallyDrop::into_inner(batch);
            match loss {
                Some(loss) => batch.loss(loss),
                None => drop(batch),
            }
        }
        phase = match turn {
            Turn::Train | Turn::Next(_) => Phase::Training(ManuallyDrop::new(reporter.batch())),
            Turn::Evaluate => Phase::Evaluating(reporter.evaluating()),
            Turn::Rest => Phase::Resting,
        };
    }
}

/// What the training is at.
enum Phase<'r> {
    Resting,
    /// A batch that was dropped would count, and one that is cut off is none.
    Training(ManuallyDrop<Batch<'r>>),
    Evaluating(#[expect(dead_code, reason = "it is held to be dropped")] Evaluation<'r>),
}

/// The turn that the future waits for.
#[derive(Clone, Default)]
struct NextTurn(Arc<Mutex<Option<Turn>>>);

impl NextTurn {
    fn set(&self, turn: Turn) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(turn);
    }

    fn get(&self) -> impl Future<Output = Turn> {
        poll_fn(|_| match self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(turn) => Poll::Ready(turn),
            None => Poll::Pending,
        })
    }
}
