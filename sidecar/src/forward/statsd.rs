//! Datagrams in statsd's format: gauges, and the duration of batches as a timing.

use std::fmt::Write;
use std::io;
use std::net::{ToSocketAddrs, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use paceline_reporter::wire::Progress;

use super::number::number;
use super::{Ending, Item, Outcome, Takes, Target};
use crate::clock::Clock;

/// Time between two datagrams.
const PERIOD: Duration = Duration::from_secs(1);
/// The most bytes of a datagram: what fits into one packet of a usual network.
const MAX_DATAGRAM: usize = 1400;
/// A name is resolved again after this time: receivers move.
const RESOLVE_PERIOD: Duration = Duration::from_mins(1);
/// The prefix of names where no other is given.
pub const DEFAULT_PREFIX: &str = "paceline.";
/// Characters that have a meaning in the format.
const RESERVED: [char; 4] = [':', '|', '@', '#'];

/// Where a statsd server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// `udp://host:port`.
    Udp(String),
    /// `unix:/path`.
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || {
            format!(
                "invalid statsd address \"{text}\": expected udp://HOST:PORT or unix:/PATH, for \
                 example udp://127.0.0.1:8125"
            )
        };
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.is_empty() { Err(invalid()) } else { Ok(Self::Unix(path.into())) };
        }
        let place = text.strip_prefix("udp://").unwrap_or(text);
        let (host, port) = place.rsplit_once(':').ok_or_else(invalid)?;
        let is_valid = !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0);
        if is_valid && !host.contains('/') {
            Ok(Self::Udp(place.to_owned()))
        } else {
            Err(invalid())
        }
    }
}

/// A statsd server.
#[derive(Debug)]
pub struct Statsd {
    address: Address,
    prefix: String,
    /// What follows each line: tags in the form of `DogStatsD`, or nothing.
    suffix: String,
    clock: Clock,
    socket: Option<(Socket, Duration)>,
    /// The number of batches so far, and their duration.
    batches: (u64, f64),
}

#[derive(Debug)]
enum Socket {
    Udp(UdpSocket),
    Unix(UnixDatagram),
}

impl Statsd {
    /// Sends to this address. Names begin with `prefix`. Plain servers know no tags, so there should be none for them.
    pub fn new(address: Address, prefix: &str, tags: &[String]) -> Result<Self, String> {
        let is_valid = |text: &str| !text.contains(RESERVED) && !text.contains(char::is_control);
        if !is_valid(prefix) {
            return Err(format!(
                "invalid statsd prefix {prefix:?}: expected no \":\", \"|\", \"@\" or \"#\", for \
                 example {DEFAULT_PREFIX}"
            ));
        }
        for tag in tags {
            let (name, value) = tag.split_once(':').unwrap_or((tag, "x"));
            let is_tag = |part: &str| is_valid(part) && !part.is_empty() && !part.contains(',');
            if !is_tag(name) || !is_tag(&value.replace(':', "")) {
                return Err(format!(
                    "invalid statsd tag {tag:?}: expected NAME:VALUE without \",\" and \"|\", for \
                     example team:vision"
                ));
            }
        }
        let suffix = if tags.is_empty() { String::new() } else { format!("|#{}", tags.join(",")) };
        let (prefix, clock) = (prefix.to_owned(), Clock::start());
        Ok(Self { address, prefix, suffix, clock, socket: None, batches: (0, 0.0) })
    }

    /// The lines for a reading.
    fn lines(&self, progress: &Progress) -> Vec<String> {
        let Self { prefix, suffix, .. } = self;
        let mut lines = Vec::new();
        for (name, value) in gauges(progress) {
            let Some(value) = value.filter(|value| value.is_finite()) else { continue };
            // A sign would change the gauge by so much. It is set to 0 before.
            if value.is_sign_negative() && value != 0.0 {
                lines.push(format!("{prefix}{name}:0|g{suffix}"));
            }
            lines.push(format!("{prefix}{name}:{}|g{suffix}", number(value.abs().copysign(value))));
        }
        lines.extend(self.timing(progress));
        lines
    }

    /// The mean duration of the batches since the last datagram. The rate says how many there were.
    fn timing(&self, progress: &Progress) -> Option<String> {
        let Self { prefix, suffix, batches: (count, sum), .. } = self;
        let latency = &progress.batch_latency;
        let more =
            u32::try_from(latency.count.checked_sub(*count)?).ok().filter(|more| *more > 0)?;
        let mean = (latency.sum - sum) / f64::from(more) * 1e3;
        let mut line = format!("{prefix}batch_latency:{}|ms", number(mean.max(0.0)));
        if more > 1 {
            // Writing to a string cannot fail.
            write!(line, "|@{}", number(1.0 / f64::from(more))).ok();
        }
        Some(line + suffix)
    }

    /// Sends without waiting; a server that does not read loses datagrams.
    fn send_all(&mut self, datagrams: &[String]) -> io::Result<()> {
        let socket = self.socket()?;
        for datagram in datagrams {
            match socket {
                Socket::Udp(socket) => socket.send(datagram.as_bytes())?,
                Socket::Unix(socket) => socket.send(datagram.as_bytes())?,
            };
        }
        Ok(())
    }

    fn socket(&mut self) -> io::Result<&Socket> {
        let now = self.clock.elapsed();
        let known =
            self.socket.take().filter(|(_, since)| now.saturating_sub(*since) < RESOLVE_PERIOD);
        let connected = match known {
            Some(known) => known,
            None => (connect(&self.address)?, now),
        };
        Ok(&self.socket.insert(connected).0)
    }
}

impl Target for Statsd {
    fn name(&self) -> String {
        match &self.address {
            Address::Udp(place) => format!("statsd:{place}"),
            Address::Unix(path) => format!("statsd:unix:{}", path.display()),
        }
    }

    fn takes(&self) -> Takes {
        Takes::Readings { period: PERIOD, spacing: Duration::ZERO }
    }

    fn resume(&mut self, before: &Progress) {
        self.batches = (before.batch_latency.count, before.batch_latency.sum);
    }

    fn send(&mut self, item: &Item, _: &Ending) -> Result<Outcome, String> {
        let Item::Reading { progress, .. } = item else { return Ok(Outcome::Nothing) };
        let datagrams = packed(&self.lines(progress));
        // What a lost datagram counted is lost, as always with statsd.
        self.batches = (progress.batch_latency.count, progress.batch_latency.sum);
        if datagrams.is_empty() {
            return Ok(Outcome::Nothing);
        }
        if let Err(error) = self.send_all(&datagrams) {
            self.socket = None;
            return Err(format!("cannot send: {error}"));
        }
        Ok(Outcome::Sent)
    }
}

fn connect(address: &Address) -> io::Result<Socket> {
    match address {
        Address::Unix(path) => {
            let socket = UnixDatagram::unbound()?;
            socket.set_nonblocking(true)?;
            socket.connect(path)?;
            Ok(Socket::Unix(socket))
        }
        Address::Udp(place) => {
            let found = place.to_socket_addrs()?.next();
            let found = found.ok_or_else(|| io::Error::other("the host has no address"))?;
            let any = if found.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let socket = UdpSocket::bind(any)?;
            socket.set_nonblocking(true)?;
            socket.connect(found)?;
            Ok(Socket::Udp(socket))
        }
    }
}

/// The names and values of the gauges.
fn gauges(progress: &Progress) -> [(&'static str, Option<f64>); 9] {
    let signals = &progress.signals;
    // Exact up to 2^53.
    let count = |count: Option<u64>| count.and_then(|count| count.to_string().parse().ok());
    [
        ("loss", progress.eval.value),
        ("loss_smoothed", signals.loss_smoothed),
        ("validation_loss", progress.validation.map(|validation| validation.value)),
        ("step", count(progress.step)),
        ("total_steps", count(progress.total_steps)),
        ("epoch", count(progress.epoch)),
        ("progress_ratio", signals.progress_ratio),
        ("eta_seconds", signals.eta_seconds),
        ("steps_per_second", signals.steps_per_second),
    ]
}

/// Puts lines together into few datagrams.
fn packed(lines: &[String]) -> Vec<String> {
    let mut datagrams: Vec<String> = Vec::new();
    for line in lines {
        match datagrams.last_mut() {
            Some(last) if last.len() + 1 + line.len() <= MAX_DATAGRAM => {
                last.push('\n');
                last.push_str(line);
            }
            _ => datagrams.push(line.clone()),
        }
    }
    datagrams
}

#[cfg(test)]
mod tests;
