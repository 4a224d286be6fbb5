//! Servers and workers on one machine: they learn together while workers come and go.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::net::SocketAddr;
use std::slice::from_ref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use paceline_ps::{Adam, Model, News, Server, ServerConfig, Slice, Traffic, Worker, WorkerError};

const WAIT_TIMEOUT: Duration = Duration::from_secs(10);
const MODEL: Model = Model { fingerprint: 7, parameters: 5 };
/// The parameters that the model is to learn.
const TRUTH: [f32; 5] = [1.0, -2.0, 0.5, 3.0, -0.25];

/// Enough steps that workers who join while others train are never too late.
const STEPS: u64 = 60_000;

/// A server on its own thread.
struct Running {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    news: Arc<Mutex<Vec<News>>>,
    pushed: Arc<AtomicU64>,
    traffic: Traffic,
    thread: JoinHandle<()>,
}

impl Running {
    fn start(address: &str, slice: &str, steps: u64) -> Self {
        let adam = Adam { learning_rate: 0.02, ..Adam::default() };
        let slice: Slice = slice.parse().unwrap();
        let server = Server::bind(address, ServerConfig { slice, adam, steps }).unwrap();
        let (address, traffic) = (server.local_addr().unwrap(), server.traffic().clone());
        let stop = Arc::new(AtomicBool::new(false));
        let (news, pushed) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicU64::new(0)));
        let (stopped, seen, counted) = (Arc::clone(&stop), Arc::clone(&news), Arc::clone(&pushed));
        let thread = thread::spawn(move || {
            let tell = |one: News| {
                if let News::Pushed { version, .. } = one {
                    counted.fetch_max(version, Ordering::Relaxed);
                } else {
                    seen.lock().unwrap().push(one);
                }
            };
            server.run(&stopped, tell).unwrap();
        });
        Self { address, stop, news, pushed, traffic, thread }
    }

    fn stop(self) -> Traffic {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        self.traffic
    }

    /// Waits until this many gradients have been taken.
    fn until(&self, version: u64) {
        let arrived = (0..2000).any(|_| {
            thread::park_timeout(Duration::from_millis(5));
            self.pushed.load(Ordering::Relaxed) >= version
        });
        assert!(arrived, "only {} gradients", self.pushed.load(Ordering::Relaxed));
    }
}

fn addresses(servers: &[&Running]) -> Vec<String> {
    servers.iter().map(|server| server.address.to_string()).collect()
}

/// Half the squared distance from the truth, and its gradient.
fn loss(parameters: &[f32]) -> (f64, Vec<f32>) {
    let gradient: Vec<f32> = parameters.iter().zip(TRUTH).map(|(is, ought)| is - ought).collect();
    (gradient.iter().map(|one| f64::from(one * one)).sum::<f64>() / 2.0, gradient)
}

/// Trains until the server ends the training, or for this many steps; returns the parameters.
fn train(servers: &[String], most: u64) -> Result<(Vec<f32>, Traffic), WorkerError> {
    let mut parameters = vec![0.0; MODEL.parameters];
    let mut worker = Worker::connect(servers, MODEL, WAIT_TIMEOUT)?;
    let mut done = worker.start(&mut parameters)?.done;
    for _ in 0..most {
        if done {
            break;
        }
        let (loss, gradient) = loss(&parameters);
        done = worker.push(loss, &gradient, &mut parameters)?.done;
    }
    Ok((parameters, worker.traffic().clone()))
}

#[test]
fn workers_that_leave_and_join_learn_together() {
    let servers =
        [Running::start("127.0.0.1:0", "0/2", STEPS), Running::start("127.0.0.1:0", "1/2", STEPS)];
    let reached = addresses(&[&servers[0], &servers[1]]);
    let work = |most| {
        let reached = reached.clone();
        thread::spawn(move || train(&reached, most).unwrap())
    };
    let (steady, brief) = (work(u64::MAX), work(100));
    brief.join().unwrap();
    servers[0].until(200);
    let late = work(u64::MAX);
    for worker in [steady, late] {
        let (parameters, _) = worker.join().unwrap();
        assert!(loss(&parameters).0 < 1e-3, "{parameters:?}");
    }
    let [first, second] = servers;
    // It ends by itself: all steps are done, and all workers have left.
    first.thread.join().unwrap();
    assert_eq!(first.pushed.load(Ordering::Relaxed), STEPS);
    let joined = first.news.lock().unwrap();
    assert_eq!(joined.iter().filter(|one| matches!(one, News::Joined { .. })).count(), 3);
    assert!(matches!(joined.last(), Some(News::Left { workers: 0, .. })), "{joined:?}");
    drop(second.stop());
}

#[test]
fn both_ends_count_same_bytes() {
    let server = Running::start("127.0.0.1:0", "0/1", 1000);
    let (_, traffic) = train(&addresses(&[&server]), 10).unwrap();
    let (ours, theirs) = (traffic.peers(), server.stop().peers());
    // A head has 20 bytes, a hello 12 more, a welcome 1, and all parameters 20.
    assert_eq!((ours[0].sent, ours[0].received), (32 + 11 * 40, 21 + 11 * 40));
    assert_eq!((theirs[0].sent, theirs[0].received), (ours[0].received, ours[0].sent));
}

#[test]
fn restarted_server_gets_parameters_from_worker() {
    let server = Running::start("127.0.0.1:0", "0/1", u64::MAX);
    let address = server.address.to_string();
    let mut worker = Worker::connect(from_ref(&address), MODEL, WAIT_TIMEOUT).unwrap();
    let mut parameters = TRUTH.to_vec();
    worker.start(&mut parameters).unwrap();
    drop(server.stop());
    let server = Running::start(&address, "0/1", u64::MAX);
    let pushed = worker.push(0.0, &[0.0; 5], &mut parameters).unwrap();
    assert_eq!((pushed.version, &parameters[..]), (0, &TRUTH[..]));
    assert_eq!(worker.push(0.0, &[0.0; 5], &mut parameters).unwrap().version, 1);
    drop(server.stop());
}

#[test]
fn wrong_worker_is_refused_with_reason() {
    let server = Running::start("127.0.0.1:0", "0/1", 10);
    let address = server.address.to_string();
    train(from_ref(&address), 1).unwrap();
    let refusal = |servers: &[String], model| {
        Worker::connect(servers, model, Duration::ZERO).unwrap_err().to_string()
    };
    let other = Model { fingerprint: 8, ..MODEL };
    assert!(refusal(from_ref(&address), other).contains("another model"));
    let twice = refusal(&[address.clone(), address], MODEL);
    assert!(twice.contains("part 0/1 of the parameters, not 0/2"), "{twice}");
    let error = Worker::connect(&["127.0.0.1:1".to_owned()], MODEL, Duration::ZERO).unwrap_err();
    assert!(matches!(error, WorkerError::Lost { .. }), "{error}");
    drop(server.stop());
}

#[test]
fn arbitrary_clients_do_not_affect_training() {
    use std::io::{Read, Write};
    let server = Running::start("127.0.0.1:0", "0/1", 100_000);
    for noise in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 64], b"PLPS", b""] {
        let mut stream = std::net::TcpStream::connect(server.address).unwrap();
        stream.write_all(noise).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        // It may have been cut off already.
        stream.read_to_end(&mut Vec::new()).ok();
    }
    let (parameters, _) = train(&addresses(&[&server]), 2000).unwrap();
    assert!(loss(&parameters).0 < 1e-3, "{parameters:?}");
    drop(server.stop());
}
