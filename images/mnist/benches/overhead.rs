//! What the reporter costs a real training: MNIST's classifier with it and without it, in turns.
//!
//! Each run trains a fresh model with the same seed on the same batches; its figure is the median
//! duration of its steps. Somebody reads the reporter's progress once a second.

#![expect(clippy::print_stdout, reason = "a benchmark talks to whoever runs it")]

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
use paceline_torch::Images;
use paceline_workload::{Dataset, Places, Schedule, openmp};
use tch::Device;
use tch::nn::{Adam, ModuleT, OptimizerConfig, VarStore};

const RUNS: usize = 5;
const STEPS: u64 = 200;
const BATCH_SIZE: usize = 64;
const SEED: u32 = 1;

/// What all runs have in common.
struct Setup {
    images: Images,
    schedule: Schedule,
}

fn main() -> anyhow::Result<()> {
    openmp::wait_passively().context("cannot start anew")?;
    tch::set_num_threads(1);
    tch::set_num_interop_threads(1);
    let folder = Places::of_user(env::var_os("PACELINE_DATA").map(PathBuf::from))?.locate()?;
    let images = Dataset::load(&folder)?.train;
    let schedule = Schedule::new(images.len(), BATCH_SIZE, 1, Some(STEPS), SEED.into());
    let setup = Setup { images: Images::new(&images), schedule };
    let disabled = Reporter::disabled();
    println!("median step of {STEPS} steps, {BATCH_SIZE} images each, 1 thread");
    println!("{:>4} {:>12} {:>12} {:>8}", "run", "without", "with", "ratio");
    // The first run warms libtorch up.
    run(&setup, &disabled)?;
    let mut ratios = Vec::new();
    for number in 1..=RUNS {
        let reporter = Reporter::builder("mnist").listen("127.0.0.1:0").start()?;
        // Which of the two goes first changes from run to run.
        let (without, with) = if number.is_multiple_of(2) {
            let with = watched(&setup, &reporter)?;
            (run(&setup, &disabled)?, with)
        } else {
            (run(&setup, &disabled)?, watched(&setup, &reporter)?)
        };
        let ratio = with.as_secs_f64() / without.as_secs_f64();
        println!("{number:>4} {without:>12.3?} {with:>12.3?} {ratio:>8.4}");
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios.get(RUNS / 2).context("there were runs")?;
    println!("median ratio {median:.4}");
    Ok(())
}

/// A run whose reporter is read once a second.
fn watched(setup: &Setup, reporter: &Reporter) -> anyhow::Result<Duration> {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                scrape(reporter);
                thread::park_timeout(Duration::from_secs(1));
            }
        });
        let median = run(setup, reporter);
        done.store(true, Ordering::Relaxed);
        reader.thread().unpark();
        median
    })
}

/// Trains a fresh model; the median duration of a step.
#[expect(clippy::disallowed_methods, reason = "this measures")]
fn run(setup: &Setup, reporter: &Reporter) -> anyhow::Result<Duration> {
    tch::manual_seed(SEED.into());
    let store = VarStore::new(Device::Cpu);
    let net = Net::new(&store.root(), setup.images.mean_and_deviation());
    let mut optimizer = Adam::default().build(&store, 1e-3)?;
    let mut durations = Vec::new();
    for positions in setup.schedule.batches(1) {
        let began = Instant::now();
        let batch = reporter.batch();
        let (images, labels) = setup.images.batch(&positions);
        let loss = net.forward_t(&images, true).cross_entropy_for_logits(&labels);
        optimizer.backward_step(&loss);
        batch.loss(f64::try_from(loss)?);
        durations.push(began.elapsed());
    }
    durations.sort();
    durations.get(durations.len() / 2).copied().context("there were steps")
}

fn scrape(reporter: &Reporter) {
    let Some(LocalAddr::Tcp(address)) = reporter.local_addr() else { return };
    let Ok(mut stream) = TcpStream::connect(address) else { return };
    drop(stream.write_all(b"GET /v1/progress HTTP/1.0\r\n\r\n"));
    drop(stream.read_to_end(&mut Vec::new()));
}
