//! Keeps a part of the parameters and updates it by the gradients that workers push.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt;

use crate::frame::{Buffer, Head, Hello, Kind};
use crate::shard::{Adam, Shard};
use crate::slices::Slice;
use crate::traffic::{Counted, Traffic};

/// The interval between two checks for new workers and for the request to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// A worker that is silent for longer is stuck.
const SILENCE_TIMEOUT: Duration = Duration::from_mins(10);
/// The time after which the kernel checks a silent worker, whose machine may be gone …
const KEEPALIVE_IDLE: Duration = Duration::from_secs(5);
/// … and the time without an answer of its kernel after which it counts as gone.
const DEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// The longest time that a worker may take to send its hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest number of workers; more are refused.
const MAX_WORKERS: usize = 256;

/// The settings of a server.
#[derive(Clone, Copy, Debug)]
pub struct ServerConfig {
    /// The part of the parameters that it keeps.
    pub slice: Slice,
    /// How gradients improve them.
    pub adam: Adam,
    /// The number of gradients after which it tells workers that training is done.
    pub steps: u64,
}

/// An event at a server.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// A worker has joined.
    Joined {
        /// Its address.
        peer: SocketAddr,
        /// The number of workers now.
        workers: usize,
    },
    /// A worker has left.
    Left {
        /// Its address.
        peer: SocketAddr,
        /// The number of workers now.
        workers: usize,
    },
    /// A connection was refused.
    Refused {
        /// Its address.
        peer: SocketAddr,
        /// The reason.
        why: String,
    },
    /// A gradient has improved the parameters.
    Pushed {
        /// The loss that it belongs to.
        loss: f64,
        /// The number of gradients so far.
        version: u64,
    },
}

/// A parameter server.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    config: ServerConfig,
    traffic: Traffic,
    kept: Mutex<Kept>,
    workers: Mutex<BTreeMap<u64, TcpStream>>,
    seen: AtomicU64,
    /// No more workers are accepted.
    closed: AtomicBool,
}

/// The parameters, from when the first worker has brought them.
#[derive(Debug, Default)]
struct Kept {
    /// Of the first worker: those of all others must be the same.
    hello: Option<Hello>,
    shard: Option<Shard>,
}

impl Server {
    /// Listens at `address`, which may mean all networks. It asks for no password, so let only
    /// workers reach it.
    pub fn bind(address: impl ToSocketAddrs, config: ServerConfig) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            config,
            traffic: Traffic::default(),
            kept: Mutex::default(),
            workers: Mutex::default(),
            seen: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        })
    }

    /// The address at which it listens.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The bytes of all workers.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Serves until `stop`, or until all gradients have arrived and all workers have left. `tell` is
    /// called on any thread.
    pub fn run(&self, stop: &AtomicBool, tell: impl Fn(News) + Sync) -> io::Result<()> {
        thread::scope(|scope| {
            let outcome = loop {
                if stop.load(Ordering::Relaxed) || (self.is_done() && self.workers().is_empty()) {
                    break Ok(());
                }
                match self.listener.accept() {
                    Ok((stream, peer)) => {
                        let tell = &tell;
                        scope.spawn(move || self.serve(stream, peer, tell));
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        thread::park_timeout(POLL_INTERVAL);
                    }
                    // It has left before it was accepted.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                    Err(error) => break Err(error),
                }
            };
            self.closed.store(true, Ordering::SeqCst);
            for worker in self.workers().values() {
                // It may have left by itself.
                worker.shutdown(Shutdown::Both).ok();
            }
            outcome
        })
    }

    /// Whether all gradients have arrived.
    fn is_done(&self) -> bool {
        self.kept().shard.as_ref().is_some_and(|shard| shard.version() >= self.config.steps)
    }

    /// Serves one worker from its hello until it leaves.
    fn serve(&self, stream: TcpStream, peer: SocketAddr, tell: &impl Fn(News)) {
        let prepared = (|| {
            stream.set_nonblocking(false)?;
            stream.set_nodelay(true)?;
            watch(&stream)?;
            stream.set_read_timeout(Some(HELLO_TIMEOUT))?;
            stream.try_clone()
        })();
        let Ok(handle) = prepared else { return };
        let mut stream = self.traffic.counted(&peer.ip().to_string(), stream);
        let mut buffer = Buffer::default();
        if let Err(why) = self.meet(&mut stream, &mut buffer) {
            // The other end may not read the answer.
            stream.write_all(buffer.words(&why)).ok();
            return tell(News::Refused { peer, why });
        }
        handle.set_read_timeout(Some(SILENCE_TIMEOUT)).ok();
        let id = self.seen.fetch_add(1, Ordering::Relaxed);
        let workers = self.change(|workers| drop(workers.insert(id, handle)));
        tell(News::Joined { peer, workers });
        if !self.closed.load(Ordering::SeqCst) {
            // A worker that leaves, in whatever way, must not affect the others.
            self.answer_all(&mut stream, &mut buffer, tell).ok();
        }
        let workers = self.change(|workers| drop(workers.remove(&id)));
        tell(News::Left { peer, workers });
    }

    /// Accepts a worker whose model is that of the others; an error gives the reason otherwise.
    fn meet(&self, stream: &mut Counted<TcpStream>, buffer: &mut Buffer) -> Result<(), String> {
        let hello = Hello::read(stream).map_err(|error| error.to_string())?;
        if hello.slice != self.config.slice {
            let (kept, asked) = (self.config.slice, hello.slice);
            return Err(format!("this server keeps part {kept} of the parameters, not {asked}"));
        }
        if self.workers().len() >= MAX_WORKERS {
            return Err(format!("there are {MAX_WORKERS} workers already"));
        }
        let (version, wanted) = {
            let mut kept = self.kept();
            if *kept.hello.get_or_insert(hello) != hello {
                return Err("the others train another model".to_owned());
            }
            (kept.shard.as_ref().map_or(0, Shard::version), kept.shard.is_none())
        };
        let frame = buffer.bytes(Kind::Welcome, version, &[u8::from(wanted)]);
        stream.write_all(frame).map_err(|error| error.to_string())
    }

    fn answer_all(
        &self,
        stream: &mut Counted<TcpStream>,
        buffer: &mut Buffer,
        tell: &impl Fn(News),
    ) -> io::Result<()> {
        let whole = self.kept().hello.map_or(0, |hello| hello.parameters);
        let mut numbers = vec![0.0; self.config.slice.range(whole).len()];
        loop {
            let head = Head::read(stream)?;
            match head.kind {
                Kind::Start => {
                    buffer.read_numbers(stream, head, &mut numbers)?;
                    let shard = || Shard::new(numbers.clone(), self.config.adam);
                    self.kept().shard.get_or_insert_with(shard);
                }
                Kind::Pull => {}
                Kind::Push => {
                    buffer.read_numbers(stream, head, &mut numbers)?;
                    if let Some(version) = self.improve(&numbers) {
                        tell(News::Pushed { loss: f64::from_bits(head.number), version });
                    }
                }
                Kind::Hello | Kind::Welcome | Kind::Parameters | Kind::Done | Kind::Refused => {
                    return Err(io::ErrorKind::InvalidData.into());
                }
            }
            {
                let kept = self.kept();
                let Some(shard) = &kept.shard else { return Err(io::ErrorKind::NotFound.into()) };
                let done = shard.version() >= self.config.steps;
                let kind = if done { Kind::Done } else { Kind::Parameters };
                buffer.numbers(kind, shard.version(), shard.parameters());
            }
            stream.write_all(buffer.frame())?;
        }
    }

    /// Applies a gradient; the new version, if the gradient was taken.
    fn improve(&self, gradient: &[f32]) -> Option<u64> {
        let mut kept = self.kept();
        let shard = kept.shard.as_mut().filter(|shard| shard.version() < self.config.steps)?;
        shard.improve(gradient).then(|| shard.version())
    }

    /// Changes the set of workers and returns their number.
    fn change(&self, change: impl FnOnce(&mut BTreeMap<u64, TcpStream>)) -> usize {
        let mut workers = self.workers();
        change(&mut workers);
        workers.len()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn workers(&self) -> MutexGuard<'_, BTreeMap<u64, TcpStream>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Has the kernel make sure that the other end is still there.
fn watch(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_IDLE)?;
    // Data that was sent and never acknowledged counts as well.
    let patience = u32::try_from(DEAD_TIMEOUT.as_millis()).unwrap_or(u32::MAX);
    Ok(sockopt::set_tcp_user_timeout(stream, patience)?)
}
