//! Server-sent events: the progress, pushed to whoever listens.

use std::sync::{Mutex, PoisonError};

use hyper::body::Bytes;
use tokio::sync::mpsc;

/// So many events may wait for one listener. One that is further behind is cut off: it reads too
/// slowly to be told anything in time.
const MOST_WAITING: usize = 8;

/// All who listen. Only the reporter's own thread comes here.
#[derive(Debug, Default)]
pub(crate) struct Listeners(Mutex<Vec<mpsc::Sender<Bytes>>>);

impl Listeners {
    /// One more listener, with the first event for it.
    pub(crate) fn add(&self, first: &str) -> mpsc::Receiver<Bytes> {
        let (sender, receiver) = mpsc::channel(MOST_WAITING);
        // The channel is new, so there is room.
        drop(sender.try_send(event(first)));
        self.all(|listeners| listeners.push(sender));
        receiver
    }

    /// Whether nobody listens.
    pub(crate) fn is_empty(&self) -> bool {
        self.all(|listeners| {
            listeners.retain(|listener| !listener.is_closed());
            listeners.is_empty()
        })
    }

    /// Tells all of them.
    pub(crate) fn tell(&self, json: &str) {
        let event = event(json);
        self.all(|listeners| listeners.retain(|one| one.try_send(event.clone()).is_ok()));
    }

    fn all<T>(&self, work: impl FnOnce(&mut Vec<mpsc::Sender<Bytes>>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The bytes of an event whose data is one line.
fn event(json: &str) -> Bytes {
    format!("data: {json}\n\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_hears_what_is_told_and_one_that_does_not_listen_is_cut_off() {
        let listeners = Listeners::default();
        let mut quick = listeners.add("0");
        let mut slow = listeners.add("0");
        assert_eq!(quick.try_recv().unwrap(), "data: 0\n\n");
        for number in 1..=10 {
            listeners.tell(&number.to_string());
            assert_eq!(quick.try_recv().unwrap(), format!("data: {number}\n\n"));
        }
        let heard: Vec<_> = std::iter::from_fn(|| slow.try_recv().ok()).collect();
        assert_eq!(heard.len(), MOST_WAITING);
        assert!(slow.is_closed() && !quick.is_closed());
    }

    #[test]
    fn who_has_gone_is_forgotten() {
        let listeners = Listeners::default();
        assert!(listeners.is_empty());
        let one = listeners.add("0");
        assert!(!listeners.is_empty());
        drop(one);
        assert!(listeners.is_empty());
    }
}
