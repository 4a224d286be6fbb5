//! The command line that the workloads share.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser};

use crate::targets::Targets;
use crate::threads::Threads;

/// The place of the images, for workloads that need some.
#[derive(Args, Clone, Debug)]
pub struct DataArgs {
    /// A folder of IDX files, plain or compressed. Otherwise the user's cache, which is filled with
    /// MNIST or, where no server of MNIST is reached, with Fashion-MNIST from Debian
    #[arg(long, env = "PACELINE_DATA", value_name = "DIR")]
    pub data: Option<PathBuf>,
}

/// The options that all workloads share.
#[derive(Args, Clone, Debug)]
pub struct TrainingArgs {
    /// The number of times to train on all of the data
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = positive())]
    pub epochs: u64,
    /// Stop after this many optimizer steps, regardless of the epochs
    #[arg(long, value_name = "N", value_parser = positive())]
    pub steps: Option<u64>,
    /// Items in a batch [default: fits the workload]
    #[arg(long, value_name = "N")]
    pub batch_size: Option<NonZeroUsize>,
    /// Threads to compute with, or `auto`: the CPUs that affinity and the CPU quota leave
    #[arg(long, value_name = "auto|N", default_value = "auto")]
    pub threads: Threads,
    /// The seed of the initial weights, the order of the data and all other randomness
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// The step size of the optimizer [default: fits the workload]
    #[arg(long, value_name = "X", value_parser = rate)]
    pub learning_rate: Option<f64>,
    /// Print the loss of every Nth batch
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = positive())]
    pub log_interval: u64,
    /// The loss from which on the model is usable [default: fits the data]. Once you
    /// set one target, the other one has no default. `PACELINE_ACCEPTABLE` takes precedence
    #[arg(long, value_name = "LOSS")]
    pub target_acceptable: Option<f64>,
    /// The loss at which the training is done. `PACELINE_OBJECTIVE` takes precedence
    #[arg(long, value_name = "LOSS")]
    pub target_objective: Option<f64>,
    /// End once the objective is reached
    #[arg(long)]
    pub stop_at_objective: bool,
    /// A folder to write checkpoints to: on request, at the acceptable loss, and at the end
    #[arg(long, env = "PACELINE_CHECKPOINTS", value_name = "DIR")]
    pub checkpoints: Option<PathBuf>,
    /// Also write a checkpoint every N steps
    #[arg(long, value_name = "N", requires = "checkpoints", value_parser = positive())]
    pub checkpoint_every: Option<u64>,
    /// Resume from the latest checkpoint, if there is one
    #[arg(long, requires = "checkpoints")]
    pub resume: bool,
    /// Write the loss of every step to a file, with all digits
    #[arg(long, value_name = "FILE")]
    pub losses: Option<PathBuf>,
}

impl TrainingArgs {
    /// The targets on the command line.
    pub fn targets(&self) -> Targets {
        Targets { acceptable: self.target_acceptable, objective: self.target_objective }
    }
}

/// An invalid command line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} (--help lists all options)")]
pub struct UsageError(String);

/// The program's command line. If it asks for help or the version, these are printed and the program
/// ends.
pub fn parse<T: Parser>() -> Result<T, UsageError> {
    T::try_parse().map_err(|error| if error.use_stderr() { one_line(&error) } else { error.exit() })
}

/// clap's message without the usage, in one line.
fn one_line(error: &clap::Error) -> UsageError {
    let text = error.to_string();
    let said = text.trim().trim_start_matches("error: ").split("\n\n");
    let said = said.take_while(|paragraph| !paragraph.starts_with("Usage:"));
    let lines = said.map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "));
    UsageError(lines.collect::<Vec<_>>().join("; "))
}

/// A finite number above 0.
fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
    rate.ok_or_else(|| "expected a number above 0".to_owned())
}

fn positive() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..)
}

#[cfg(test)]
mod tests {
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
    fn defaults_use_all_cpus_and_no_target() {
        let training = parse("vae").unwrap();
        assert!(training.threads.count() >= 1);
        assert_eq!(training.targets(), Targets::default());
        assert_eq!((training.epochs, training.steps), (10, None));
        assert_eq!(training.checkpoints, None);
    }

    #[test]
    fn arguments_are_parsed() {
        let training = parse("vae --threads 3 --target-objective 90 --checkpoints /ck --resume");
        let training = training.unwrap();
        assert_eq!(training.threads, Threads::Fixed(3));
        assert_eq!(training.targets().objective, Some(90.0));
        assert_eq!(training.checkpoints.unwrap().to_str(), Some("/ck"));
        assert!(training.resume);
        assert_eq!(parse("vae --threads auto").unwrap().threads, Threads::Auto);
    }

    #[test]
    fn wrong_option_is_named_in_one_line() {
        let said = |line| one_line(&parse(line).unwrap_err()).to_string();
        assert_eq!(
            said("vae --step 3"),
            "unexpected argument '--step' found; tip: a similar argument exists: '--steps' \
             (--help lists all options)",
        );
        assert_eq!(
            said("vae --resume"),
            "the following required arguments were not provided: --checkpoints <DIR> \
             (--help lists all options)",
        );
    }

    #[test]
    fn invalid_values_are_refused() {
        for line in [
            "--steps 0",
            "--epochs 0",
            "--threads 0",
            "--threads 1025",
            "--threads many",
            "--learning-rate 0",
            "--learning-rate inf",
            "--log-interval 0",
            "--checkpoint-every 5",
            "--checkpoints /ck --checkpoint-every 0",
            "--resume",
        ] {
            assert!(parse(&format!("vae {line}")).is_err(), "{line}");
        }
    }
}
