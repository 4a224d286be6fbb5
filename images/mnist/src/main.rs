//! A convolutional classifier of 28 by 28 images: the model of PyTorch's MNIST example, with the
//! cross entropy as its loss, trained by Adam in batches of 64.

use std::num::NonZeroUsize;

use anyhow::Context;
use clap::Parser;
use paceline_mnist::Net;
use paceline_reporter::Reporter;
use paceline_torch::{Images, Run};
use paceline_workload::{Stop, Targets, TrainingArgs, note, openmp};
use tch::nn::{Adam, ModuleT, OptimizerConfig, VarStore};
use tch::{Device, Kind, Reduction, Tensor, no_grad};

/// As in PyTorch's example.
const BATCH_SIZE: NonZeroUsize = NonZeroUsize::new(64).expect("not 0");
/// Reached after about 60 and 80 steps.
const MNIST: Targets = Targets::new(0.3, 0.25);
/// Reached after about 60 and 200 steps.
const FASHION_MNIST: Targets = Targets::new(0.5, 0.4);

/// Trains a convolutional classifier on 28 by 28 images, and reports its loss.
///
/// SIGTERM ends it after the batch that it is at, with exit code 0.
#[derive(Debug, Parser)]
#[command(version, after_help = "Example: mnist --steps 500 --threads 1 --target-objective 0.2")]
struct Args {
    #[command(flatten)]
    training: TrainingArgs,
}

fn main() -> anyhow::Result<()> {
    openmp::wait_passively().context("cannot start anew")?;
    let args = Args::parse().training;
    let Run { kind, dataset, train, test, schedule, stop, mut log } =
        Run::begin(&args, BATCH_SIZE)?;
    let store = VarStore::new(Device::Cpu);
    let net = Net::new(&store.root(), train.mean_and_deviation());
    let mut optimizer = Adam::default().build(&store, args.learning_rate)?;

    let job = Reporter::builder("mnist")
        .loss_name("cross entropy")
        .dataset(dataset)
        .total_steps(schedule.steps());
    let targets = args.targets().or(kind.targets(MNIST, FASHION_MNIST));
    let reporter = targets.tell(job).from_env().start().unwrap_or_else(|error| {
        note(format_args!("training without reports: {:#}", anyhow::Error::from(error)));
        Reporter::disabled()
    });

    'training: for epoch in 1..=schedule.epochs() {
        reporter.epoch(epoch);
        for positions in schedule.batches(epoch) {
            let batch = reporter.batch();
            let (images, labels) = train.batch(&positions);
            let loss = net.forward_t(&images, true).cross_entropy_for_logits(&labels);
            optimizer.backward_step(&loss);
            let loss = f64::try_from(loss)?;
            batch.loss(loss);

            log.batch(epoch, loss)?;
            if stop.requested() {
                break 'training;
            }
        }
        if schedule.is_whole(epoch) {
            let (loss, accuracy) = no_grad(|| evaluate(&net, &test, &stop))?;
            let percent = 100.0 * accuracy;
            log.line(&format!("Test set: Average loss: {loss:.4}, Accuracy: {percent:.2}%"))?;
        }
    }
    reporter.finish();
    log.finish()?;
    Ok(())
}

/// The mean loss of the test images, and the part that is classified rightly; of some of them only
/// once the run is to stop.
fn evaluate(net: &Net, images: &Images, stop: &Stop) -> anyhow::Result<(f64, f64)> {
    let (mut loss, mut right, mut count) = (0.0, 0.0, 0);
    for (images, labels) in images.chunks(500).take_while(|_| !stop.requested()) {
        let scores = net.forward_t(&images, false);
        let sum = scores.cross_entropy_loss::<Tensor>(&labels, None, Reduction::Sum, -100, 0.0);
        loss += f64::try_from(sum)?;
        right += f64::try_from(scores.argmax(1, false).eq_tensor(&labels).sum(Kind::Double))?;
        count += i32::try_from(labels.size1()?)?;
    }
    Ok((loss / f64::from(count), right / f64::from(count)))
}
