//! The bytes sent to and received from each peer.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The bytes of all peers so far, including those that have left.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    peers: Arc<Mutex<BTreeMap<String, Arc<Counters>>>>,
}

/// The bytes that a peer's connections carried, without the headers of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerTraffic {
    /// Its address without the port, so that a peer that connects again stays the same.
    pub peer: String,
    /// Bytes that were sent to it.
    pub sent: u64,
    /// Bytes that came from it.
    pub received: u64,
}

#[derive(Debug, Default)]
struct Counters {
    sent: AtomicU64,
    received: AtomicU64,
}

impl Traffic {
    /// All peers, in the order of their names.
    pub fn peers(&self) -> Vec<PeerTraffic> {
        let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let row = |(peer, counters): (&String, &Arc<Counters>)| PeerTraffic {
            peer: peer.clone(),
            sent: counters.sent.load(Ordering::Relaxed),
            received: counters.received.load(Ordering::Relaxed),
        };
        peers.iter().map(row).collect()
    }

    /// Wraps a connection to `peer` so that its bytes are counted.
    pub(crate) fn counted<S>(&self, peer: &str, stream: S) -> Counted<S> {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let counters = Arc::clone(peers.entry(peer.to_owned()).or_default());
        Counted { stream, counters }
    }
}

/// A connection whose bytes are counted.
#[derive(Debug)]
pub(crate) struct Counted<S> {
    stream: S,
    counters: Arc<Counters>,
}

impl<S: Read> Read for Counted<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.read(buffer)?;
        add(&self.counters.received, read);
        Ok(read)
    }
}

impl<S: Write> Write for Counted<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.stream.write(bytes)?;
        add(&self.counters.sent, written);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

fn add(counter: &AtomicU64, bytes: usize) {
    counter.fetch_add(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_peer_are_summed_over_connections() {
        let traffic = Traffic::default();
        traffic.counted("b", Vec::new()).write_all(b"four").unwrap();
        traffic.counted("b", Vec::new()).write_all(b"more").unwrap();
        let mut read = Vec::new();
        traffic.counted("a", &b"three"[..]).read_to_end(&mut read).unwrap();
        let row =
            |peer: &str, sent, received| PeerTraffic { peer: peer.to_owned(), sent, received };
        assert_eq!(traffic.peers(), [row("a", 0, 5), row("b", 8, 0)]);
    }
}
