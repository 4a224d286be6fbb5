//! Gated recurrent units (Cho et al., 2014), trained by Adam with clipped gradients on one of two
//! tasks.

use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use paceline_gru::adding::{AddingNet, LENGTH, Sequences};
use paceline_gru::text::{Corpus, TextNet, WINDOW};
use paceline_torch::{
    Adam, BadInput, Clipped, Job, Optimizer, Parameters, Replicas, Setup, Test, Trainer, run,
};
use paceline_workload::{Stop, Targets, TrainingArgs};
use tch::nn::VarStore;
use tch::{Device, TchError};

const BATCH_SIZE: NonZeroUsize = NonZeroUsize::new(64).expect("not 0");
/// The norm that gradients are clipped to.
const MAX_NORM: f64 = 1.0;
/// The number of sequences between two tests of the adding problem, whose data has no end.
const EPOCH: usize = 500 * 64;
/// The number of sequences in a test.
const TEST: i64 = 1000;
const ADDING: Targets = Targets::new(0.01, 0.008);
const TEXT: Targets = Targets::new(1.8, 1.6);

/// Trains gated recurrent units, and reports their loss.
///
/// Without a task, it is `adding`. SIGTERM ends it after the current batch, with a checkpoint
/// and exit code 0.
#[derive(Debug, Parser)]
#[command(
    version,
    args_conflicts_with_subcommands = true,
    after_help = "Examples: gru --threads 1, gru text --text shakespeare.txt --epochs 3"
)]
struct Command {
    #[command(subcommand)]
    task: Option<Task>,
    #[command(flatten)]
    adding: TrainingArgs,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// The adding problem: the sum of two marked numbers of 100. It needs no data
    Adding(TrainingArgs),
    /// The next character of a text
    Text(TextArgs),
}

#[derive(Args, Debug)]
struct TextArgs {
    /// A text in UTF-8; its last tenth is kept for validation
    #[arg(long, value_name = "FILE")]
    text: PathBuf,
    /// Print this many characters that the model generates, after each epoch
    #[arg(long, value_name = "N", default_value_t = 200)]
    sample: usize,
    #[command(flatten)]
    training: TrainingArgs,
}

fn main() -> ExitCode {
    run("gru", train)
}

fn train(command: Command) -> anyhow::Result<()> {
    match command.task.unwrap_or(Task::Adding(command.adding)) {
        Task::Adding(training) => add(training),
        Task::Text(args) => read(args),
    }
}

fn add(training: TrainingArgs) -> anyhow::Result<()> {
    let setup = Setup::begin("gru", training)?;
    let store = VarStore::new(Device::Cpu);
    let net = AddingNet::new(&store.root());
    // They follow from the seed, as the initial weights do. No step draws them again.
    let tests = Sequences::draw(TEST);
    let job = Job {
        loss_name: "mean squared error",
        dataset: format!("adding problem, length {LENGTH}"),
        data: format!("adding problem: the sum of 2 of {LENGTH} numbers"),
        unit: "sequences",
        items: EPOCH,
        batch_size: BATCH_SIZE,
        targets: ADDING,
    };
    let batch_size = batch_size(&setup, &job)?;
    let mut replicas = Replicas::new(setup.threads(), &store, AddingNet::new, AddingNet::loss);
    let optimizer = optimizer(&setup, &store, 3e-3)?;
    Trainer::begin(setup, &job, &store, optimizer)?.run(
        |_| {
            let parts = Sequences::draw(batch_size).split(replicas.parts());
            replicas.mean(&net, parts)
        },
        |_| {
            let loss = f64::try_from(net.loss(&tests))?;
            Ok(Test { loss, line: format!("====> Test set loss: {loss:.6}") })
        },
    )
}

fn read(args: TextArgs) -> anyhow::Result<()> {
    let TextArgs { text, sample, training } = args;
    let setup = Setup::begin("gru-text", training)?;
    let cannot = || format!("cannot train on {}", text.display());
    let bytes = fs::read(&text).with_context(cannot).map_err(BadInput::new)?;
    let corpus = Corpus::new(bytes).with_context(cannot).map_err(BadInput::new)?;
    let store = VarStore::new(Device::Cpu);
    let characters = i32::try_from(corpus.alphabet().len())?;
    let net = TextNet::new(&store.root(), characters);
    let name = text.file_name().unwrap_or(text.as_os_str()).display();
    let job = Job {
        loss_name: "cross entropy, nats per character",
        dataset: format!("{name}, {} characters, {characters} distinct", corpus.len()),
        data: format!("{name}: {} characters to train on, {characters} distinct", corpus.len()),
        unit: "windows",
        items: corpus.len().div_ceil(usize::try_from(WINDOW)?),
        batch_size: BATCH_SIZE,
        targets: TEXT,
    };
    let batch_size = batch_size(&setup, &job)?;
    let mut replicas = Replicas::new(
        setup.threads(),
        &store,
        |path| TextNet::new(path, characters),
        TextNet::loss,
    );
    let optimizer = optimizer(&setup, &store, 4e-3)?;
    Trainer::begin(setup, &job, &store, optimizer)?.run(
        |_| {
            let parts = corpus.draw(batch_size).split(replicas.parts());
            replicas.mean(&net, parts)
        },
        |stop| {
            let loss = validation_loss(&net, &corpus, stop)?;
            let written = net.write(&corpus, sample);
            Ok(Test { loss, line: format!("====> Test set loss: {loss:.4}\n{written}") })
        },
    )
}

/// The mean loss of the part for validation.
fn validation_loss(net: &TextNet, corpus: &Corpus, stop: &Stop) -> anyhow::Result<f64> {
    let (mut sum, mut count) = (0.0, 0);
    for windows in corpus.validation(256).take_while(|_| !stop.requested()) {
        let windows_count = i32::try_from(windows.count())?;
        sum += f64::try_from(net.loss(&windows))? * f64::from(windows_count);
        count += windows_count;
    }
    Ok(sum / f64::from(count))
}

fn batch_size(setup: &Setup, job: &Job) -> anyhow::Result<i64> {
    Ok(i64::try_from(setup.schedule(job).batch_size())?)
}

fn optimizer(
    setup: &Setup,
    store: &VarStore,
    learning_rate: f64,
) -> Result<Box<dyn Optimizer>, TchError> {
    let learning_rate = setup.learning_rate(learning_rate);
    let adam = Adam::on(setup.threads_of_ours(), &Parameters::from_store(store), learning_rate)?;
    Ok(Box::new(Clipped::new(adam, MAX_NORM)))
}
