//! A convolutional classifier of 28 by 28 images: the model of PyTorch's MNIST example, with the
//! cross entropy as its loss, trained by Adam in batches of 64.

use std::num::NonZeroUsize;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use paceline_mnist::Net;
use paceline_torch::{
    BadInput, ImageData, Images, Parameters, Setup, Test, Trainer, exit_code, serve,
};
use paceline_workload::{
    DataArgs, Role, RoleArgs, Stop, Targets, TrainingArgs, environment, parse,
};
use tch::nn::{ModuleT, VarStore};
use tch::{Device, Kind, Reduction, Tensor};

/// As in PyTorch's example.
const BATCH_SIZE: NonZeroUsize = NonZeroUsize::new(64).expect("not 0");
/// Reached after about 80 and 90 steps.
const MNIST: Targets = Targets::new(0.3, 0.25);
/// Reached after about 130 and 260 steps.
const FASHION_MNIST: Targets = Targets::new(0.5, 0.4);

/// Trains a convolutional classifier on 28 by 28 images, and reports its loss.
///
/// SIGTERM ends it after the batch that it is at, with a checkpoint and exit code 0.
#[derive(Debug, Parser)]
#[command(version, after_help = "Example: mnist --steps 500 --threads 1 --target-objective 0.2")]
struct Args {
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    training: TrainingArgs,
    #[command(flatten)]
    role: RoleArgs,
}

fn main() -> ExitCode {
    exit_code("mnist", train())
}

fn train() -> anyhow::Result<()> {
    environment::complete().context("cannot start anew")?;
    let args: Args = parse().map_err(BadInput::new)?;
    let setup = Setup::begin("mnist", args.training)?;
    if args.role.role == Role::Ps {
        return serve(setup, &args.role);
    }
    let data = ImageData::load(args.data)?;
    let store = VarStore::new(Device::Cpu);
    let net = Net::new(&store.root(), data.train.mean_and_deviation());
    let adam = setup.adam(&args.role, &Parameters::of(&store))?;
    let job = data.job("cross entropy", BATCH_SIZE, [MNIST, FASHION_MNIST]);
    let trainer = Trainer::begin(setup, &job, &store, adam)?;
    let mut shuffle = trainer.shuffle();
    trainer.run(
        |step| {
            let (images, labels) = data.train.batch(shuffle.batch(step));
            Ok(net.forward_t(&images, true).cross_entropy_for_logits(&labels))
        },
        |stop| test(&net, &data.test, stop),
    )
}

/// The mean loss of the test images, and the part that is classified rightly.
fn test(net: &Net, images: &Images, stop: &Stop) -> anyhow::Result<Test> {
    let (mut loss, mut right, mut count) = (0.0, 0.0, 0);
    for (images, labels) in images.chunks(500).take_while(|_| !stop.requested()) {
        let scores = net.forward_t(&images, false);
        let sum = scores.cross_entropy_loss::<Tensor>(&labels, None, Reduction::Sum, -100, 0.0);
        loss += f64::try_from(sum)?;
        right += f64::try_from(scores.argmax(1, false).eq_tensor(&labels).sum(Kind::Double))?;
        count += i32::try_from(labels.size1()?)?;
    }
    let (loss, percent) = (loss / f64::from(count), 100.0 * right / f64::from(count));
    let line = format!("Test set: Average loss: {loss:.4}, Accuracy: {percent:.2}%");
    Ok(Test { loss, line })
}
