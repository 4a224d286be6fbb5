//! An engine behind a proxy that is slow, refuses, fails, lies or breaks off, at random.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::random::Random;

/// One request of so many meets a fault.
const FAULT_EVERY: u64 = 12;
/// The proxy is dead for this long …
const OUTAGE: Duration = Duration::from_secs(5);
/// … once in this time.
const OUTAGE_EVERY: Duration = Duration::from_mins(2);
/// The longest delay of an answer.
const MAX_DELAY_MS: u64 = 3_000;

/// The proxy. Dropping it ends it.
#[derive(Debug)]
pub struct FaultyEngine {
    socket: PathBuf,
    shared: Arc<Shared>,
    _serving: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    engine: PathBuf,
    calm: AtomicBool,
    faults: AtomicU64,
    requests: AtomicU64,
    began: Instant,
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The connection is closed before the request is passed on.
    Refused,
    /// The answer comes late.
    Slow(Duration),
    /// The request fails, and is not passed on.
    Failed,
    /// The request is carried out, and reported as failed.
    FailedLate,
    /// The answer breaks off.
    Cut,
    /// The answer is something else.
    Garbage,
}

impl FaultyEngine {
    /// Starts it before the engine at `engine`, with a socket in `folder`. It is calm at first.
    pub fn start(engine: &Path, folder: &Path, seed: u64) -> anyhow::Result<Self> {
        let socket = folder.join("faulty.sock");
        let listener = UnixListener::bind(&socket)?;
        let shared = Arc::new(Shared {
            engine: engine.to_owned(),
            calm: AtomicBool::new(true),
            faults: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            began: Instant::now(),
        });
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Arc::clone(&shared), Random::new(seed)));
        Ok(Self { socket, shared, _serving: serving })
    }

    /// Its address, for `--host`.
    pub fn host(&self) -> String {
        format!("unix://{}", self.socket.display())
    }

    /// From now on, requests meet faults.
    pub fn fail_at_random(&self) {
        self.shared.calm.store(false, Ordering::Relaxed);
    }

    /// From now on, every request is passed on.
    pub fn calm_down(&self) {
        self.shared.calm.store(true, Ordering::Relaxed);
    }

    /// How many requests there were, and how many of them met a fault.
    pub fn requests_and_faults(&self) -> (u64, u64) {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (of(&self.shared.requests), of(&self.shared.faults))
    }
}

async fn serve(listener: UnixListener, shared: Arc<Shared>, mut random: Random) {
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            Ok((client, _)) = listener.accept() => {
                let fault = shared.fault(&mut random);
                let shared = Arc::clone(&shared);
                // A client that leaves early is not a fault of the proxy.
                open.spawn(async move { drop(pass_on(client, &shared.engine, fault).await) });
            }
            Some(_) = open.join_next() => {}
        }
    }
}

impl Shared {
    fn fault(&self, random: &mut Random) -> Option<Fault> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if self.calm.load(Ordering::Relaxed) {
            return None;
        }
        let phase = self.began.elapsed().as_secs() % OUTAGE_EVERY.as_secs();
        let is_out = phase >= OUTAGE_EVERY.as_secs() - OUTAGE.as_secs();
        let fault = match random.below(6 * FAULT_EVERY) {
            _ if is_out => Fault::Refused,
            0 => Fault::Refused,
            1 => Fault::Slow(Duration::from_millis(random.below(MAX_DELAY_MS))),
            2 => Fault::Failed,
            3 => Fault::FailedLate,
            4 => Fault::Cut,
            5 => Fault::Garbage,
            _ => return None,
        };
        self.faults.fetch_add(1, Ordering::Relaxed);
        Some(fault)
    }
}

async fn pass_on(mut client: UnixStream, engine: &Path, fault: Option<Fault>) -> io::Result<()> {
    const FAILED: &[u8] = b"HTTP/1.1 500 -\r\nContent-Type: application/json\r\n\
        Content-Length: 24\r\nConnection: close\r\n\r\n{\"message\":\"as ordered\"}\n";
    const GARBAGE: &[u8] = b"HTTP/1.1 200 -\r\nContent-Type: application/json\r\n\
        Content-Length: 9\r\nConnection: close\r\n\r\n[[[\"\x01\x02\x03\xff\xfe";
    match fault {
        None => {}
        Some(Fault::Refused) => return Ok(()),
        Some(Fault::Slow(delay)) => sleep(delay).await,
        Some(Fault::Failed) => return answer(&mut client, FAILED).await,
        Some(Fault::Garbage) => return answer(&mut client, GARBAGE).await,
        Some(fault @ (Fault::FailedLate | Fault::Cut)) => {
            let mut request = vec![0; 64 * 1024];
            let length = client.read(&mut request).await?;
            let mut server = UnixStream::connect(engine).await?;
            server.write_all(request.get(..length).unwrap_or_default()).await?;
            let mut reply = vec![0; 64 * 1024];
            let length = server.read(&mut reply).await?;
            let cut = reply.get(..length / 2).unwrap_or_default();
            let answer = if matches!(fault, Fault::Cut) { cut } else { FAILED };
            return client.write_all(answer).await;
        }
    }
    let mut server = UnixStream::connect(engine).await?;
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}

async fn answer(client: &mut UnixStream, text: &[u8]) -> io::Result<()> {
    let mut request = vec![0; 64 * 1024];
    // Whatever was asked.
    client.read(&mut request).await.map(drop)?;
    client.write_all(text).await
}
