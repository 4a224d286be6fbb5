//! What the reporter costs a real training: MNIST's classifier with it and without it, in turns.
//!
//! A pair of runs trains two fresh models with the same seed on the same batches, step by step in
//! turns, so that other load on the machine disturbs both alike. With each step the models
//! change places, since the place of a model in memory matters more than its reporter. A run's
//! figure is the median duration of its steps. A client reads the reporter's progress once a second.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::env;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use paceline_mnist::Net;
use paceline_reporter::{LocalAddr, Reporter};
use paceline_torch::{Adam, Images, Optimizer, Parameters};
use paceline_workload::{Dataset, Places, Schedule, Shuffle, environment};
use tch::Device;
use tch::nn::{ModuleT, VarStore};

const RUNS: usize = 5;
const STEPS: u64 = 300;
const BATCH_SIZE: usize = 64;
const SEED: u32 = 1;

/// The settings that all runs share.
struct Setup {
    images: Images,
    schedule: Schedule,
}

fn main() -> anyhow::Result<()> {
    environment::complete().context("cannot restart the program")?;
    tch::set_num_threads(1);
    tch::set_num_interop_threads(1);
    let folder = Places::of_user(env::var_os("PACELINE_DATA").map(PathBuf::from))?.locate()?;
    let images = Dataset::load(&folder)?.train;
    let schedule = Schedule::new(images.len(), BATCH_SIZE, 1, Some(STEPS));
    let setup = Setup { images: Images::new(&images), schedule };
    let disabled = Reporter::disabled();
    println!("median step of {STEPS} steps, {BATCH_SIZE} images each, 1 thread");
    println!("{:>4} {:>12} {:>12} {:>8}", "run", "without", "with", "ratio");
    // The first pair warms up libtorch.
    pair(&setup, &disabled, &disabled)?;
    let mut ratios = Vec::new();
    for number in 1..=RUNS {
        let reporter = Reporter::builder("mnist").listen("127.0.0.1:0").start()?;
        let [without, with] = watched(&reporter, || pair(&setup, &disabled, &reporter))?;
        let ratio = with.as_secs_f64() / without.as_secs_f64();
        println!("{number:>4} {without:>12.3?} {with:>12.3?} {ratio:>8.4}");
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios.get(RUNS / 2).context("there were runs")?;
    println!("median ratio {median:.4}");
    Ok(())
}

/// Does `work` while the reporter is read once a second.
fn watched<T>(reporter: &Reporter, work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                scrape(reporter);
                thread::park_timeout(Duration::from_secs(1));
            }
        });
        let result = work();
        done.store(true, Ordering::Relaxed);
        reader.thread().unpark();
        result
    })
}

/// A model in training.
struct Training {
    net: Net,
    parameters: Parameters,
    optimizer: Adam,
}

impl Training {
    fn new(setup: &Setup) -> anyhow::Result<Self> {
        tch::manual_seed(SEED.into());
        let store = VarStore::new(Device::Cpu);
        let net = Net::new(&store.root(), setup.images.mean_and_deviation());
        let parameters = Parameters::from_store(&store);
        let optimizer = Adam::new(&parameters, 1e-3)?;
        Ok(Self { net, parameters, optimizer })
    }

    /// Makes a step and returns its duration.
    #[expect(clippy::disallowed_methods, reason = "this measures")]
    fn step(
        &mut self,
        setup: &Setup,
        positions: &[i64],
        reporter: &Reporter,
    ) -> anyhow::Result<Duration> {
        let began = Instant::now();
        let batch = reporter.batch();
        let (images, labels) = setup.images.batch(positions);
        let loss = self.net.forward_t(&images, true).cross_entropy_for_logits(&labels);
        self.optimizer.step(&self.parameters.gradients(&loss)?)?;
        batch.loss(f64::try_from(loss)?);
        Ok(began.elapsed())
    }
}

/// Makes every step with each of the reporters and returns the median durations.
fn pair(setup: &Setup, one: &Reporter, other: &Reporter) -> anyhow::Result<[Duration; 2]> {
    let mut models = [Training::new(setup)?, Training::new(setup)?];
    let (mut with_one, mut with_other) = (Vec::new(), Vec::new());
    let mut shuffle = Shuffle::new(setup.schedule, SEED.into());
    for step in 1..=setup.schedule.steps() {
        let positions = shuffle.batch(step);
        let [first, second] = &mut models;
        if step.is_multiple_of(2) {
            with_one.push(first.step(setup, positions, one)?);
            with_other.push(second.step(setup, positions, other)?);
        } else {
            with_other.push(first.step(setup, positions, other)?);
            with_one.push(second.step(setup, positions, one)?);
        }
    }
    Ok([median(with_one), median(with_other)])
}

fn median(mut durations: Vec<Duration>) -> Duration {
    durations.sort();
    durations.get(durations.len() / 2).copied().unwrap_or_default()
}

fn scrape(reporter: &Reporter) {
    let Some(LocalAddr::Tcp(address)) = reporter.local_addr() else { return };
    let Ok(mut stream) = TcpStream::connect(address) else { return };
    drop(stream.write_all(b"GET /v1/progress HTTP/1.0\r\n\r\n"));
    drop(stream.read_to_end(&mut Vec::new()));
}
