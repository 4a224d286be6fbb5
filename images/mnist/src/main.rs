//! A convolutional classifier of 28 by 28 images: the model of PyTorch's MNIST example, with the
//! cross entropy as its loss, trained by Adam in batches of 64.

use std::num::NonZeroUsize;
use std::process::ExitCode;

use clap::Parser;
use paceline_mnist::Net;
use paceline_torch::{ImageData, Parameters, Setup, Trainer, classify, run, serve};
use paceline_workload::{DataArgs, Role, RoleArgs, Targets, TrainingArgs};
use tch::Device;
use tch::nn::{ModuleT, VarStore};

/// As in PyTorch's example.
const BATCH_SIZE: NonZeroUsize = NonZeroUsize::new(64).expect("not 0");
/// Reached after about 80 and 90 steps.
const MNIST: Targets = Targets::new(0.3, 0.25);
/// Reached after about 130 and 260 steps.
const FASHION_MNIST: Targets = Targets::new(0.5, 0.4);

/// Trains a convolutional classifier on 28 by 28 images, and reports its loss.
///
/// SIGTERM ends it after the current batch, with a checkpoint and exit code 0.
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
    run("mnist", train)
}

fn train(args: Args) -> anyhow::Result<()> {
    let setup = Setup::begin("mnist", args.training)?;
    if args.role.role == Role::Ps {
        return serve(setup, &args.role);
    }
    let data = ImageData::load(args.data)?;
    let store = VarStore::new(Device::Cpu);
    let net = Net::new(&store.root(), data.train.mean_and_deviation());
    let adam = setup.adam(&args.role, &Parameters::from_store(&store))?;
    let job = data.job("cross entropy", BATCH_SIZE, [MNIST, FASHION_MNIST]);
    let trainer = Trainer::begin(setup, &job, &store, adam)?;
    let mut shuffle = trainer.shuffle();
    trainer.run(
        |step| {
            let (images, labels) = data.train.batch(shuffle.batch(step));
            Ok(net.forward_t(&images, true).cross_entropy_for_logits(&labels))
        },
        |stop| classify(&net, data.test.chunks(500), stop),
    )
}
