//! The command line that the workloads have in common.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use crate::targets::Targets;

/// What the workloads have in common.
#[derive(Args, Clone, Debug)]
pub struct TrainingArgs {
    /// A folder of IDX files, plain or compressed. Otherwise the user's cache, which is filled with
    /// MNIST or, where no server of MNIST is reached, with Fashion-MNIST from Debian
    #[arg(long, env = "PACELINE_DATA", value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// How many times to train on all images
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = positive())]
    pub epochs: u64,
    /// Stop after so many optimizer steps, whatever the epochs
    #[arg(long, value_name = "N", value_parser = positive())]
    pub steps: Option<u64>,
    /// Images in a batch [default: 128 for `vae`, 64 for `mnist`]
    #[arg(long, value_name = "N")]
    pub batch_size: Option<NonZeroUsize>,
    /// Threads to compute with [default: the CPUs that are available]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=1024))]
    pub threads: Option<i32>,
    /// Of the initial weights and of the order of the images
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// The step size of Adam
    #[arg(long, value_name = "X", default_value_t = 1e-3)]
    pub learning_rate: f64,
    /// Print the loss of every so many batches
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = positive())]
    pub log_interval: u64,
    /// The loss from which on the model is usable [default: fits MNIST or Fashion-MNIST]. Once you
    /// set one target, the other one has no default. `PACELINE_ACCEPTABLE` takes precedence
    #[arg(long, value_name = "LOSS")]
    pub target_acceptable: Option<f64>,
    /// The loss at which the training is done. `PACELINE_OBJECTIVE` takes precedence
    #[arg(long, value_name = "LOSS")]
    pub target_objective: Option<f64>,
}

impl TrainingArgs {
    /// The targets on the command line.
    pub fn targets(&self) -> Targets {
        Targets { acceptable: self.target_acceptable, objective: self.target_objective }
    }

    /// The threads to compute with. What is available is what affinity and quota allow.
    pub fn threads(&self) -> i32 {
        let available = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        self.threads.unwrap_or_else(|| i32::try_from(available()).unwrap_or(i32::MAX))
    }
}

fn positive() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        training: TrainingArgs,
    }

    fn parse(line: &str) -> Result<TrainingArgs, clap::Error> {
        Command::try_parse_from(line.split(' ')).map(|command| command.training)
    }

    #[test]
    fn without_arguments_every_available_cpu_is_used_and_no_target_set() {
        let training = parse("vae").unwrap();
        assert!(training.threads() >= 1);
        assert_eq!(training.targets(), Targets::default());
        assert_eq!((training.epochs, training.steps), (10, None));
    }

    #[test]
    fn arguments_are_taken() {
        let training = parse("vae --threads 3 --target-objective 90 --data /images").unwrap();
        assert_eq!(training.threads(), 3);
        assert_eq!(training.targets().objective, Some(90.0));
        assert_eq!(training.data.unwrap().to_str(), Some("/images"));
    }

    #[test]
    fn no_steps_and_no_threads_are_refused() {
        for line in ["vae --steps 0", "vae --epochs 0", "vae --threads 0", "vae --log-interval 0"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
