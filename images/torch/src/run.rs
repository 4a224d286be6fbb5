//! What a training run needs beside its model.

use std::io::{Stdout, stdout};
use std::num::NonZeroUsize;

use paceline_workload::{Dataset, Kind, Places, Schedule, Stop, TrainLog, TrainingArgs};

use crate::images::Images;

/// What a training run needs beside its model.
#[derive(Debug)]
pub struct Run {
    /// Which data set it is.
    pub kind: Kind,
    /// What the data set is called.
    pub dataset: String,
    /// The images to train on.
    pub train: Images,
    /// The images to test on.
    pub test: Images,
    /// Which images are trained on in which step.
    pub schedule: Schedule,
    /// Whether the run has been asked to end.
    pub stop: Stop,
    /// What the run prints.
    pub log: TrainLog<Stdout>,
}

impl Run {
    /// Sets libtorch up, then finds the images and reads them.
    pub fn begin(args: &TrainingArgs, batch_size: NonZeroUsize) -> anyhow::Result<Self> {
        let threads = args.threads();
        tch::set_num_threads(threads);
        // No operation here runs beside another one; threads for that would only compete.
        tch::set_num_interop_threads(1);
        tch::manual_seed(args.seed.cast_signed());

        let folder = Places::of_user(args.data.clone())?.locate()?;
        // Fetching is ended at once by a signal, training after a batch.
        let stop = Stop::on_signals()?;
        let Dataset { kind, name, train, test } = Dataset::load(&folder)?;
        let batch_size = args.batch_size.unwrap_or(batch_size).get();
        let schedule = Schedule::new(train.len(), batch_size, args.epochs, args.steps, args.seed);
        let mut log = TrainLog::new(stdout(), schedule, args.log_interval);
        let (images, tests, steps) = (train.len(), test.len(), schedule.steps());
        log.line(&format!(
            "{name} from {}: {images} images to train on, {tests} to test on; \
             {steps} steps of {batch_size} images, {threads} threads",
            folder.display(),
        ))?;
        let (train, test) = (Images::new(&train), Images::new(&test));
        Ok(Self { kind, dataset: name, train, test, schedule, stop, log })
    }
}
