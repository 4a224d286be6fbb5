//! The loop that the workloads share; they differ in the loss of a step and in their test.

use std::io::{Stdout, stdout};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::Context;
use paceline_reporter::{Reason, Reporter};
use paceline_workload::{
    CheckpointError, Identity, LossFile, Schedule, Shuffle, Stop, Targets, TrainLog, TrainingArgs,
    note, seed_of_step,
};
use tch::nn::VarStore;
use tch::no_grad;

use crate::aims::aiming;
use crate::loss::Loss;
use crate::optimizer::Optimizer;
use crate::parameters::Parameters;
use crate::program::BadInput;
use crate::recent::Recent;
use crate::saver::{Now, Saver};
use crate::setup::Setup;
use crate::state;

/// The data of a training and its targets.
#[derive(Clone, Debug)]
pub struct Job {
    /// The name of the loss.
    pub loss_name: &'static str,
    /// The name of the data set.
    pub dataset: String,
    /// The description of the data in the log.
    pub data: String,
    /// The name of the items of the data.
    pub unit: &'static str,
    /// The items of an epoch.
    pub items: usize,
    /// The items of a batch, unless the command line says otherwise.
    pub batch_size: NonZeroUsize,
    /// The losses to reach, unless the command line says otherwise.
    pub targets: Targets,
}

/// The result of a test on data that the model is not trained on.
#[derive(Clone, Debug)]
pub struct Test {
    /// Its mean loss.
    pub loss: f64,
    /// Its line in the log.
    pub line: String,
}

/// A run that is about to train.
#[derive(Debug)]
pub struct Trainer {
    seed: u64,
    schedule: Schedule,
    /// The number of steps made.
    step: u64,
    parameters: Parameters,
    optimizer: Box<dyn Optimizer>,
    reporter: Reporter,
    recent: Recent,
    log: TrainLog<Stdout>,
    losses: Option<LossFile>,
    saver: Saver,
    checkpoint_every: Option<u64>,
    stop: Stop,
}

impl Trainer {
    /// Begins a run, or resumes one from its checkpoint.
    pub fn begin(
        setup: Setup,
        job: &Job,
        store: &VarStore,
        mut optimizer: Box<dyn Optimizer>,
    ) -> anyhow::Result<Self> {
        let schedule = setup.schedule(job);
        let Setup { workload, args, stop, checkpoints } = setup;
        let seed = args.seed;
        let batch_size = schedule.batch_size();
        let dataset = job.dataset.clone();
        let run = Identity { workload: workload.to_owned(), dataset, seed, batch_size };
        let model = state::variables(store);
        let mut saver = Saver { folder: checkpoints, run, model, saved: 0 };
        let resumed = if args.resume { saver.resume(&mut *optimizer) } else { Ok(None) };
        let resumed = resumed.map_err(BadInput::new)?;
        let step = saver.saved;

        let losses = args.losses.as_ref().map(|path| {
            let cannot = || format!("cannot write losses to {}", path.display());
            LossFile::begin(path, step).with_context(cannot).map_err(BadInput::new)
        });
        let mut log = TrainLog::new(stdout(), schedule, args.log_interval, step);
        let (steps, threads) = (schedule.steps(), args.threads.count());
        let Job { data, unit, .. } = job;
        log.line(&format!("{data}; {steps} steps of {batch_size} {unit}, {threads} threads"))?;
        match resumed {
            Some(path) => log.line(&format!("resumed at step {step} from {}", path.display()))?,
            None if args.resume => note("No checkpoint yet: training from the start."),
            None => {}
        }
        stop.when_asked();
        Ok(Self {
            seed,
            schedule,
            step,
            parameters: Parameters::from_store(store),
            optimizer,
            reporter: reporter(workload, job, &args, schedule, step),
            recent: Recent::default(),
            log,
            losses: losses.transpose()?,
            saver,
            checkpoint_every: args.checkpoint_every,
            stop,
        })
    }

    /// The assignment of items to steps.
    pub fn shuffle(&self) -> Shuffle {
        Shuffle::new(self.schedule, self.seed)
    }

    /// Trains to the end, or until it is asked to stop.
    ///
    /// `loss` is called with the number of each step, counted from 1, and `test` after each epoch.
    /// Randomness in `loss` must come from libtorch's generator or follow from seed and step. Then
    /// a resumed run is the same as one that was never interrupted.
    pub fn run<L: Into<Loss>>(
        mut self,
        loss: impl FnMut(u64) -> anyhow::Result<L>,
        test: impl FnMut(&Stop) -> anyhow::Result<Test>,
    ) -> anyhow::Result<()> {
        let result = self.train(loss, test);
        match &result {
            Ok(()) => self.reporter.finish(),
            Err(_) => self.reporter.fail(),
        }
        result
    }

    fn train<L: Into<Loss>>(
        &mut self,
        mut loss: impl FnMut(u64) -> anyhow::Result<L>,
        mut test: impl FnMut(&Stop) -> anyhow::Result<Test>,
    ) -> anyhow::Result<()> {
        while self.step < self.schedule.steps() && !self.is_to_stop() {
            self.make_step(&mut loss)?;
            self.answer_request();
            if self.checkpoint_every.is_some_and(|every| self.step.is_multiple_of(every)) {
                complain(self.save());
            }
            if self.schedule.ends_epoch(self.step) && !self.is_to_stop() {
                self.test(&mut test)?;
            }
        }
        if self.saver.is_behind(self.step) {
            self.save()?;
        }
        self.log.finish()?;
        Ok(())
    }

    fn make_step<L: Into<Loss>>(
        &mut self,
        loss: &mut impl FnMut(u64) -> anyhow::Result<L>,
    ) -> anyhow::Result<()> {
        let step = self.step + 1;
        self.reporter.epoch(self.schedule.epoch_of(step));
        let batch = self.reporter.batch();
        tch::manual_seed(seed_of_step(self.seed, step).cast_signed());
        let (loss, gradients) = loss(step)?.into().into_gradients(&self.parameters)?;
        self.optimizer.tell(loss);
        self.optimizer.step(&gradients)?;
        batch.loss(loss);

        self.step = step;
        self.recent.add(loss);
        if let Some(file) = &mut self.losses {
            file.add(step, loss).context("cannot write the file of losses")?;
        }
        self.log.batch(loss)?;
        Ok(())
    }

    fn test(&mut self, test: &mut impl FnMut(&Stop) -> anyhow::Result<Test>) -> anyhow::Result<()> {
        let evaluation = self.reporter.evaluating();
        let Test { loss, line } = no_grad(|| test(&self.stop))?;
        drop(evaluation);
        // An interrupted test has no result.
        if !self.stop.requested() {
            self.reporter.validation(loss);
            self.log.line(&line)?;
        }
        Ok(())
    }

    fn is_to_stop(&self) -> bool {
        self.stop.requested() || self.reporter.should_stop()
    }

    /// Saves a checkpoint if the reporter has a request. A failure is part of the answer, and
    /// training continues.
    fn answer_request(&mut self) {
        let Self { reporter, saver, optimizer, step, recent, .. } = self;
        let Some(request) = reporter.checkpoint_requested() else { return };
        let now = Now { step: *step, loss: recent.mean(), optimizer: &**optimizer };
        let outcome = request.save(|reason| saver.save(reason, &now));
        if saver.folder.is_some() {
            complain(outcome);
        }
    }

    fn save(&mut self) -> Result<PathBuf, CheckpointError> {
        let Self { saver, optimizer, step, recent, .. } = self;
        saver
            .save(Reason::Asked, &Now { step: *step, loss: recent.mean(), optimizer: &**optimizer })
    }
}

/// A checkpoint that cannot be written does not end the training: the previous one remains.
fn complain(outcome: Result<PathBuf, CheckpointError>) {
    if let Err(error) = outcome {
        note(error);
    }
}

fn reporter(
    workload: &str,
    job: &Job,
    args: &TrainingArgs,
    schedule: Schedule,
    step: u64,
) -> Reporter {
    let builder = Reporter::builder(workload)
        .loss_name(job.loss_name)
        .dataset(&job.dataset)
        .total_steps(schedule.steps())
        .first_step(step);
    let builder = if args.stop_at_objective { builder.stop_at_objective() } else { builder };
    let reporter = aiming(builder, args.targets().or(job.targets)).from_env().start();
    reporter.unwrap_or_else(|error| {
        note(format_args!("training without reports: {:#}", anyhow::Error::from(error)));
        Reporter::disabled()
    })
}
