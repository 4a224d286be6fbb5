//! Server-sent events: the progress, pushed to the listeners.

use std::sync::{Mutex, PoisonError};

use hyper::body::Bytes;
use tokio::sync::mpsc;

/// The most events that may wait for one listener. One that is further behind reads too slowly and
/// is disconnected.
const MAX_WAITING: usize = 8;

/// All listeners. Only the reporter's own thread uses this.
#[derive(Debug, Default)]
pub(crate) struct Listeners(Mutex<Vec<mpsc::Sender<Bytes>>>);

impl Listeners {
    /// Adds a listener and sends it a first event.
    pub(crate) fn add(&self, first: &str) -> mpsc::Receiver<Bytes> {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        // The channel is new, so this cannot fail.
        drop(sender.try_send(event(first)));
        self.all(|listeners| listeners.push(sender));
        receiver
    }

    /// Whether there are no listeners.
    pub(crate) fn is_empty(&self) -> bool {
        self.all(|listeners| {
            listeners.retain(|listener| !listener.is_closed());
            listeners.is_empty()
        })
    }

    /// Sends an event to all of them.
    pub(crate) fn send(&self, json: &str) {
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
    fn listener_gets_events_and_a_slow_one_is_cut_off() {
        let listeners = Listeners::default();
        let mut quick = listeners.add("0");
        let mut slow = listeners.add("0");
        assert_eq!(quick.try_recv().unwrap(), "data: 0\n\n");
        for number in 1..=10 {
            listeners.send(&number.to_string());
            assert_eq!(quick.try_recv().unwrap(), format!("data: {number}\n\n"));
        }
        let received: Vec<_> = std::iter::from_fn(|| slow.try_recv().ok()).collect();
        assert_eq!(received.len(), MAX_WAITING);
        assert!(slow.is_closed() && !quick.is_closed());
    }

    #[test]
    fn closed_listeners_are_removed() {
        let listeners = Listeners::default();
        assert!(listeners.is_empty());
        let one = listeners.add("0");
        assert!(!listeners.is_empty());
        drop(one);
        assert!(listeners.is_empty());
    }
}
