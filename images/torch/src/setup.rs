//! The setup of a run, before data and model.

use paceline_workload::{Checkpoints, Role, RoleArgs, Schedule, Stop, TrainingArgs};

use crate::optimizer::{Adam, Optimizer, Remote};
use crate::parameters::Parameters;
use crate::program::BadInput;
use crate::trainer::Job;

/// The default step size of Adam: PyTorch's.
pub(crate) const ADAM: f64 = 1e-3;

/// A run whose command line is in order and whose libtorch is set up.
#[derive(Debug)]
pub struct Setup {
    pub(crate) workload: &'static str,
    pub(crate) args: TrainingArgs,
    pub(crate) stop: Stop,
    pub(crate) checkpoints: Option<Checkpoints>,
}

impl Setup {
    /// Sets up libtorch, and checks that checkpoints can be written to the chosen folder.
    pub fn begin(workload: &'static str, args: TrainingArgs) -> anyhow::Result<Self> {
        let stop = Stop::at_once()?;
        let open = |folder| Checkpoints::open(folder, workload).map_err(BadInput::new);
        let checkpoints = args.checkpoints.clone().map(open).transpose()?;
        tch::set_num_threads(args.threads.count());
        // No operation here runs beside another one, so threads for that would only compete.
        tch::set_num_interop_threads(1);
        // The seed of the initial weights.
        tch::manual_seed(args.seed.cast_signed());
        Ok(Self { workload, args, stop, checkpoints })
    }

    /// The step size of the optimizer: that of the command line, or this default.
    pub fn learning_rate(&self, default: f64) -> f64 {
        self.args.learning_rate.unwrap_or(default)
    }

    /// The steps of a job.
    pub fn schedule(&self, job: &Job) -> Schedule {
        let TrainingArgs { batch_size, epochs, steps, .. } = &self.args;
        let batch_size = batch_size.unwrap_or(job.batch_size).get();
        Schedule::new(job.items, batch_size, *epochs, *steps)
    }

    /// The options of the command line.
    pub fn args(&self) -> &TrainingArgs {
        &self.args
    }

    /// The threads to compute with.
    pub fn threads(&self) -> i32 {
        self.args.threads.count()
    }

    /// The threads that the caller may share work among: all of them where libtorch computes with one.
    pub fn threads_of_ours(&self) -> usize {
        if tch::get_num_threads() > 1 { 1 } else { usize::try_from(self.threads()).unwrap_or(1) }
    }

    /// The request to stop.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// The optimizer: Adam, here or at the parameter servers.
    pub fn adam(
        &self,
        role: &RoleArgs,
        parameters: &Parameters,
    ) -> anyhow::Result<Box<dyn Optimizer>> {
        Ok(match role.role {
            Role::Worker => {
                Box::new(Remote::connect(&role.servers, parameters, self.stop.clone())?)
            }
            Role::Alone | Role::Ps => {
                let learning_rate = self.learning_rate(ADAM);
                Box::new(Adam::on(self.threads_of_ours(), parameters, learning_rate)?)
            }
        })
    }
}
