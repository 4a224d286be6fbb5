//! Computes gradients for servers that keep the parameters.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::thread;
use std::time::Duration;

use crate::frame::{Buffer, Head, Hello, Kind};
use crate::slices::Slice;
use crate::traffic::{Counted, Traffic};

/// The time between two attempts to reach a server.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// The longest wait for an answer: a server answers at once, unless it has no CPU.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);

/// The model that a worker trains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// The fingerprint of its parameters' names and shapes; the server refuses workers with another one.
    pub fingerprint: u64,
    /// The number of its parameters.
    pub parameters: usize,
}

/// The answer to a pushed gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// The number of gradients that the first server has taken from all workers.
    pub version: u64,
    /// No more gradients are wanted.
    pub done: bool,
}

/// The reason why a worker cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// A server cannot be reached, or its connection is lost and does not come back.
    #[error("cannot reach parameter server {server}")]
    Lost {
        /// Its address.
        server: String,
        /// The cause.
        source: io::Error,
    },
    /// A server refuses this worker.
    #[error("parameter server {server} refused this worker: {why}")]
    Refused {
        /// Its address.
        server: String,
        /// The server's reason.
        why: String,
    },
}

/// A worker, connected to all servers of a model.
#[derive(Debug)]
pub struct Worker {
    model: Model,
    links: Vec<Link>,
    traffic: Traffic,
    patience: Duration,
    buffer: Buffer,
}

/// The link to one server.
#[derive(Debug)]
struct Link {
    server: String,
    slice: Slice,
    /// The connection; `None` between two of them.
    stream: Option<Counted<TcpStream>>,
    /// The server has no parameters yet.
    wanted: bool,
}

/// The reason why one exchange failed.
enum Fault {
    /// A new connection may help.
    Connection(io::Error),
    Refused(String),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Connection(error)
    }
}

impl Worker {
    /// Connects to the servers, in the order of the parts that they keep. Each of them, now and when
    /// its connection is lost later, is waited for as long as `patience`.
    pub fn connect(
        servers: &[String],
        model: Model,
        patience: Duration,
    ) -> Result<Self, WorkerError> {
        let of = u16::try_from(servers.len()).unwrap_or(u16::MAX);
        let slices = (0..of).filter_map(|index| Slice::new(index, of));
        let links = servers.iter().zip(slices).map(|(server, slice)| Link {
            server: server.clone(),
            slice,
            stream: None,
            wanted: false,
        });
        let mut worker = Self {
            model,
            links: links.collect(),
            traffic: Traffic::default(),
            patience,
            buffer: Buffer::default(),
        };
        for link in &mut worker.links {
            link.reach(model, &worker.traffic, patience, &mut worker.buffer)?;
        }
        Ok(worker)
    }

    /// The bytes of all servers.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Sends the first parameters to servers that have none, and gets those of the others.
    pub fn start(&mut self, parameters: &mut [f32]) -> Result<Pushed, WorkerError> {
        self.exchange(None, parameters)
    }

    /// Pushes a gradient with its loss, and gets the current parameters.
    ///
    /// A server whose connection is lost and comes back does not get this gradient. A server that has
    /// lost its parameters gets ours.
    pub fn push(
        &mut self,
        loss: f64,
        gradient: &[f32],
        parameters: &mut [f32],
    ) -> Result<Pushed, WorkerError> {
        self.exchange(Some((loss, gradient)), parameters)
    }

    /// Sends to all servers before it waits for any of them.
    fn exchange(
        &mut self,
        push: Option<(f64, &[f32])>,
        parameters: &mut [f32],
    ) -> Result<Pushed, WorkerError> {
        let Self { model, links, traffic, patience, buffer } = self;
        let of = |link: &Link| link.slice.range(model.parameters);
        let mut sent = Vec::with_capacity(links.len());
        for link in links.iter_mut() {
            let range = of(link);
            sent.push(link.send(push, range, parameters, buffer));
        }
        let mut pushed = Pushed { version: 0, done: false };
        for (link, sent) in links.iter_mut().zip(sent) {
            let range = of(link);
            let mut answer = match sent {
                Ok(()) => link.receive(range.clone(), parameters, buffer),
                Err(error) => Err(Fault::Connection(error)),
            };
            while let Err(fault) = answer {
                if let Fault::Refused(why) = fault {
                    return Err(WorkerError::Refused { server: link.server.clone(), why });
                }
                thread::park_timeout(RETRY_INTERVAL);
                link.reach(*model, traffic, *patience, buffer)?;
                answer = link
                    .send(None, range.clone(), parameters, buffer)
                    .map_err(Fault::Connection)
                    .and_then(|()| link.receive(range.clone(), parameters, buffer));
            }
            let Ok(answer) = answer else { continue };
            pushed.done |= answer.done;
            if link.slice.index() == 0 {
                pushed.version = answer.version;
            }
        }
        Ok(pushed)
    }
}

impl Link {
    /// Connects, retrying until patience ends.
    fn reach(
        &mut self,
        model: Model,
        traffic: &Traffic,
        patience: Duration,
        buffer: &mut Buffer,
    ) -> Result<(), WorkerError> {
        self.stream = None;
        let mut left = patience;
        loop {
            match self.meet(model, traffic, buffer) {
                Ok(()) => return Ok(()),
                Err(Fault::Refused(why)) => {
                    return Err(WorkerError::Refused { server: self.server.clone(), why });
                }
                Err(Fault::Connection(source)) if left.is_zero() => {
                    return Err(WorkerError::Lost { server: self.server.clone(), source });
                }
                Err(Fault::Connection(_)) => {
                    thread::park_timeout(RETRY_INTERVAL);
                    left = left.saturating_sub(RETRY_INTERVAL);
                }
            }
        }
    }

    fn meet(&mut self, model: Model, traffic: &Traffic, buffer: &mut Buffer) -> Result<(), Fault> {
        let stream = TcpStream::connect(&self.server)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
        let mut stream = traffic.counted(&self.server, stream);
        let Model { fingerprint, parameters } = model;
        Hello { fingerprint, parameters, slice: self.slice }.send(&mut stream, buffer)?;
        let head = answer(&mut stream, buffer)?;
        let mut wanted = [0];
        if head.kind != Kind::Welcome || head.length != wanted.len() {
            return Err(io::Error::from(io::ErrorKind::InvalidData).into());
        }
        stream.read_exact(&mut wanted)?;
        self.wanted = wanted != [0];
        self.stream = Some(stream);
        Ok(())
    }

    /// Sends a gradient, unless the server wants first parameters before.
    fn send(
        &mut self,
        push: Option<(f64, &[f32])>,
        range: Range<usize>,
        parameters: &[f32],
        buffer: &mut Buffer,
    ) -> io::Result<()> {
        let stream = self.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        let frame = match push {
            Some((loss, gradient)) => {
                buffer.numbers(Kind::Push, loss.to_bits(), part(gradient, range))
            }
            None if self.wanted => buffer.numbers(Kind::Start, 0, part(parameters, range)),
            None => buffer.bytes(Kind::Pull, 0, &[]),
        };
        stream.write_all(frame)
    }

    fn receive(
        &mut self,
        range: Range<usize>,
        parameters: &mut [f32],
        buffer: &mut Buffer,
    ) -> Result<Pushed, Fault> {
        let stream = self.stream.as_mut().ok_or(io::Error::from(io::ErrorKind::NotConnected))?;
        let head = answer(stream, buffer)?;
        let done = match head.kind {
            Kind::Done => true,
            Kind::Parameters => false,
            Kind::Hello | Kind::Welcome | Kind::Start | Kind::Pull | Kind::Push | Kind::Refused => {
                return Err(io::Error::from(io::ErrorKind::InvalidData).into());
            }
        };
        let part = parameters.get_mut(range).unwrap_or_default();
        buffer.read_numbers(stream, head, part)?;
        self.wanted = false;
        Ok(Pushed { version: head.number, done })
    }
}

fn part(all: &[f32], range: Range<usize>) -> &[f32] {
    all.get(range).unwrap_or_default()
}

/// Waits for a frame; a refusal is an error.
fn answer(stream: &mut Counted<TcpStream>, buffer: &mut Buffer) -> Result<Head, Fault> {
    let head = Head::read(stream)?;
    if head.kind == Kind::Refused {
        return Err(Fault::Refused(buffer.read_words(stream, head)?));
    }
    Ok(head)
}
