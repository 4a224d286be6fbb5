//! ResNet-50 on images of 32 by 32 pixels: trained by gradient descent with momentum, or used to
//! classify images while the latency of each batch is measured.

use std::io::{Write, stdout};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser};
use paceline_reporter::Reporter;
use paceline_resnet50::inference::{self, Plan};
use paceline_resnet50::{ColorData, ResNet50, Stem};
use paceline_torch::{
    Optimizer, Parameters, Scheduled, Setup, Sgd, Trainer, classify, load_weights, run,
};
use paceline_workload::{DataArgs, Schedule, TrainingArgs, WarmUpCosine, note};
use tch::nn::{ModuleT, VarStore};
use tch::{Device, no_grad};

/// Images in a batch to train on.
const BATCH_SIZE: NonZeroUsize = NonZeroUsize::new(128).expect("not 0");
/// Images in a batch of inference.
const INFERENCE: NonZeroUsize = NonZeroUsize::new(100).expect("not 0");
const LEARNING_RATE: f64 = 0.1;
const MOMENTUM: f64 = 0.9;
const WEIGHT_DECAY: f64 = 5e-4;
/// The learning rate rises for a twentieth of all steps.
const WARM_UP: u64 = 20;

/// Trains ResNet-50 on images of 32 by 32 pixels, and reports its loss; or, with --inference, reports
/// the latency of its batches.
///
/// SIGTERM ends it after the current batch, with a checkpoint and exit code 0.
#[derive(Debug, Parser)]
#[command(
    name = "resnet50",
    version,
    after_help = "Examples: resnet50 --data cifar-10-batches-bin --epochs 30\n          \
                  resnet50 --inference --arrivals 0.5 --target-latency 2"
)]
struct Command {
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    training: TrainingArgs,
    /// The first layers of the network
    #[arg(long, value_enum, default_value = "imagenet")]
    stem: Stem,
    #[command(flatten)]
    inference: InferenceArgs,
}

#[derive(Args, Debug)]
struct InferenceArgs {
    /// Do not train: classify the test images, in batches of 100. Steps are batches then
    #[arg(
        long,
        conflicts_with_all = [
            "resume", "losses", "learning_rate", "checkpoint_every",
            "target_acceptable", "target_objective", "stop_at_objective",
        ]
    )]
    inference: bool,
    /// Let batches arrive at random, this many per second on average, and wait for their turn [default:
    /// one after the other]
    #[arg(long, value_name = "RATE", requires = "inference", value_parser = arrivals)]
    arrivals: Option<f64>,
    /// The target latency of a batch in seconds, from its arrival to its answer.
    /// `PACELINE_BATCH_LATENCY` takes precedence
    #[arg(long, value_name = "SECONDS", requires = "inference", value_parser = seconds)]
    target_latency: Option<Duration>,
    /// Weights from a checkpoint, or from a state dict of PyTorch [default: random ones]
    #[arg(long, value_name = "FILE", requires = "inference")]
    weights: Option<PathBuf>,
}

fn main() -> ExitCode {
    run("resnet50", train_or_infer)
}

fn train_or_infer(command: Command) -> anyhow::Result<()> {
    let Command { data, training, stem, inference } = command;
    let setup = Setup::begin("resnet50", training)?;
    let data = ColorData::load(data)?;
    let store = VarStore::new(Device::Cpu);
    let net = ResNet50::new(&store.root(), stem);
    if inference.inference {
        if let Some(path) = &inference.weights {
            load_weights(&store, path)?;
        }
        infer(&setup, &data, &net, &inference)
    } else {
        train(setup, &data, &store, &net)
    }
}

fn train(setup: Setup, data: &ColorData, store: &VarStore, net: &ResNet50) -> anyhow::Result<()> {
    let job = data.job(BATCH_SIZE);
    let steps = setup.schedule(&job).steps();
    let rate = setup.learning_rate(LEARNING_RATE);
    let sgd = Sgd::new(&Parameters::from_store(store), rate, MOMENTUM)?.weight_decay(WEIGHT_DECAY);
    let rates = WarmUpCosine::new(rate, steps.div_ceil(WARM_UP), steps);
    let optimizer: Box<dyn Optimizer> = Box::new(Scheduled::new(sgd, rates));
    let trainer = Trainer::begin(setup, &job, store, optimizer)?;
    let mut shuffle = trainer.shuffle();
    trainer.run(
        |step| {
            let (images, labels) = data.train.varied(shuffle.batch(step), data.augmentation);
            Ok(net.forward_t(&images, true).cross_entropy_for_logits(&labels))
        },
        |stop| classify(net, data.test.chunks(100), stop),
    )
}

fn infer(
    setup: &Setup,
    data: &ColorData,
    net: &ResNet50,
    args: &InferenceArgs,
) -> anyhow::Result<()> {
    let TrainingArgs { batch_size, epochs, steps, seed, log_interval, threads, .. } = setup.args();
    let size = batch_size.unwrap_or(INFERENCE).get();
    let schedule = Schedule::new(data.test.count(), size, *epochs, *steps);
    let plan = Plan {
        batches: schedule.steps(),
        arrivals: args.arrivals,
        seed: *seed,
        target: args.target_latency,
        log_interval: *log_interval,
    };
    let reporter = reporter(data, &plan);
    let (what, batches, threads) = (data.description(), plan.batches, threads.count());
    writeln!(stdout(), "{what}; {batches} batches of {size} images, {threads} threads")?;
    setup.stop().when_asked();
    let result = inference::run(&plan, &reporter, setup.stop(), |batch| {
        let (images, _) = data.test.batch(&positions(&schedule, batch));
        let answers = no_grad(|| net.forward_t(&images, false).argmax(1, false));
        anyhow::ensure!(answers.numel() > 0, "a batch without images");
        Ok(())
    });
    match &result {
        Ok(_) => reporter.finish(),
        Err(_) => reporter.fail(),
    }
    writeln!(stdout(), "{}", result?.finish())?;
    Ok(())
}

fn reporter(data: &ColorData, plan: &Plan) -> Reporter {
    let builder = Reporter::builder("resnet50-inference").dataset(data.name());
    let builder = builder.total_steps(plan.batches);
    let builder = match plan.target {
        Some(target) => builder.batch_latency(target.as_secs_f64()),
        None => builder,
    };
    builder.from_env().start().unwrap_or_else(|error| {
        note(format_args!("inference without reports: {:#}", anyhow::Error::from(error)));
        Reporter::disabled()
    })
}

/// The positions of the images of a batch, counted from 0: all images in their order, over and over.
fn positions(schedule: &Schedule, batch: u64) -> Vec<i64> {
    let before = usize::try_from(schedule.batches_before(batch + 1)).unwrap_or_default();
    let first = before * schedule.batch_size();
    (0..).take(schedule.items()).skip(first).take(schedule.batch_size()).collect()
}

fn arrivals(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| (1e-6..=1000.0).contains(rate));
    rate.ok_or_else(|| "expected a number above 0, and at most 1000".to_owned())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds
        .filter(|it| !it.is_zero())
        .ok_or_else(|| "expected a number of seconds above 0".to_owned())
}
