//! A variational autoencoder, 784-400-20, trained as PyTorch's well-known example is: the binary
//! cross entropy of all pixels plus the KL divergence, summed over a batch of 128, by Adam.
//!
//! The loss that it prints and reports is that of one image.

use std::num::NonZeroUsize;
use std::process::ExitCode;

use clap::Parser;
use paceline_torch::{ImageData, Images, Parameters, Replicas, Setup, Test, Trainer, run, serve};
use paceline_vae::{Batch, Vae};
use paceline_workload::{DataArgs, Role, RoleArgs, Stop, Targets, TrainingArgs};
use tch::Device;
use tch::nn::VarStore;

/// As in PyTorch's example.
const BATCH_SIZE: NonZeroUsize = NonZeroUsize::new(128).expect("not 0");
/// Reached after about 600 and 1100 steps.
const MNIST: Targets = Targets::new(120.0, 110.0);
/// Reached after about 600 and 1200 steps.
const FASHION_MNIST: Targets = Targets::new(250.0, 245.0);

/// Trains a variational autoencoder on 28 by 28 images, and reports its loss.
///
/// SIGTERM ends it after the current batch, with a checkpoint and exit code 0.
#[derive(Debug, Parser)]
#[command(version, after_help = "Example: vae --epochs 3 --threads 1 --target-objective 105")]
struct Args {
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    training: TrainingArgs,
    #[command(flatten)]
    role: RoleArgs,
}

fn main() -> ExitCode {
    run("vae", train)
}

fn train(args: Args) -> anyhow::Result<()> {
    let setup = Setup::begin("vae", args.training)?;
    if args.role.role == Role::Ps {
        return serve(setup, &args.role);
    }
    let data = ImageData::load(args.data)?;
    let store = VarStore::new(Device::Cpu);
    let model = Vae::new(&store.root());
    let mut replicas = Replicas::new(setup.threads(), &store, Vae::new, Vae::loss);
    let adam = setup.adam(&args.role, &Parameters::from_store(&store))?;
    let job = data.job("cross entropy + KL per image", BATCH_SIZE, [MNIST, FASHION_MNIST]);
    let trainer = Trainer::begin(setup, &job, &store, adam)?;
    let mut shuffle = trainer.shuffle();
    trainer.run(
        |step| {
            let batch = Batch::draw(data.train.batch(shuffle.batch(step)).0.flat_view());
            replicas.sum(&model, batch.split(replicas.parts()))
        },
        |stop| test_loss(&model, &data.test, stop),
    )
}

/// The mean loss of the test images.
fn test_loss(model: &Vae, images: &Images, stop: &Stop) -> anyhow::Result<Test> {
    let (mut sum, mut seen) = (0.0, 0);
    for (images, _) in images.chunks(1000).take_while(|_| !stop.requested()) {
        let batch = Batch::draw(images.flat_view());
        sum += f64::try_from(model.loss(&batch))?;
        seen += batch.count();
    }
    let loss = sum / f64::from(seen);
    Ok(Test { loss, line: format!("====> Test set loss: {loss:.4}") })
}
