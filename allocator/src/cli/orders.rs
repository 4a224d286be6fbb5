//! Orders to a running allocator: `paceline manage`, `release`, `pin`, `set`, `guard`, `log-level`.

use std::process::ExitCode;

use anyhow::anyhow;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, Subcommand};
use paceline_api::live::order::Guard;
use paceline_api::live::{Command, Refusal};
use paceline_api::plain::{plain, plain_json, print};
use paceline_api::usage::BadUsage;
use paceline_policy::Share;
use paceline_server::control::{Reply, Request};
use paceline_wire::Targets;

use super::control_args::ControlArgs;

/// An order on the command line.
#[derive(Debug, Subcommand)]
pub(super) enum Orders {
    /// Let the policy manage a running container
    ///
    /// The order opts the container in, even without the label paceline.enable=true. It also
    /// ends
    /// the effect of `paceline release` and `paceline pin`.
    #[command(after_help = "Example:
  paceline manage vae")]
    Manage(Named),

    /// Stop managing a job, and restore its original limits immediately
    #[command(after_help = "Example:
  paceline release vae        until `paceline manage vae`")]
    Release(Named),

    /// Hold a job's CPU limit at a share of the node, regardless of the policy
    #[command(after_help = "Examples:
  paceline pin vae 0.25       a quarter of the node's CPU
  paceline pin vae 25%        the same
  paceline manage vae         lets the policy manage it again")]
    Pin {
        #[command(flatten)]
        named: Named,

        /// The share: a number above 0 and at most 1, or a percentage
        #[arg(value_parser = share)]
        share: Share,
    },

    /// Set a job's targets. They override those of its labels and its endpoint
    #[command(
        override_usage = "paceline set <NAME> [--acceptable <LOSS>] [--objective <LOSS>] \
[--batch-latency <SECONDS>]",
        after_help = "Examples:
  paceline set vae --acceptable 120 --objective 110
  paceline set dqn --batch-latency 0.05"
    )]
    Set {
        #[command(flatten)]
        named: Named,

        #[command(flatten)]
        targets: TargetArgs,
    },

    /// Switch a guard of the limiter on or off for one job
    ///
    /// slew limits the size of one change. fairness keeps a job from falling far below an equal
    /// share. canary undoes a cut that slows the job down too much.
    #[command(after_help = "Example:
  paceline guard vae canary on")]
    Guard {
        #[command(flatten)]
        named: Named,

        /// The guard
        #[arg(value_parser = guard())]
        guard: Guard,

        /// Whether the guard is on
        #[arg(action = ArgAction::Set, value_parser = PossibleValuesParser::new(["on", "off"]).map(|word| word == "on"))]
        on: bool,
    },

    /// Change the log level of the running allocator
    #[command(after_help = "Examples:
  paceline log-level debug
  paceline log-level info,hyper=debug")]
    LogLevel {
        /// A level (error, warn, info, debug, trace), or a filter in the form of
        /// `PACELINE_LOG`
        filter: String,

        #[command(flatten)]
        how: How,
    },
}

/// The job of an order.
#[derive(Debug, Args)]
pub(super) struct Named {
    /// A job's name, a container's name, or the start of a container's id
    #[arg(value_parser = name)]
    name: String,

    #[command(flatten)]
    how: How,
}

/// How the order is sent, and its answer printed.
#[derive(Debug, Args)]
pub(super) struct How {
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    control: ControlArgs,
}

/// Targets; at least one.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(super) struct TargetArgs {
    /// The loss at which the model becomes usable
    #[arg(long, value_name = "LOSS", value_parser = finite)]
    acceptable: Option<f64>,

    /// The loss at which the job is done
    #[arg(long, value_name = "LOSS", value_parser = finite)]
    objective: Option<f64>,

    /// The target duration of a batch, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds_of_a_batch)]
    batch_latency: Option<f64>,
}

/// A share as a fraction or a percentage.
fn share(text: &str) -> Result<Share, String> {
    let allowed = || {
        format!(
            "invalid share {text:?}: expected a number above 0 and at most 1, or a percentage, for example 25%"
        )
    };
    let (number, whole) = text.strip_suffix('%').map_or((text, 1.0), |percent| (percent, 100.0));
    let fraction = number.trim().parse::<f64>().map_err(|_| allowed())? / whole;
    Share::new(fraction).map_err(|_| allowed())
}

fn finite(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| "expected a finite number".to_owned())
}

/// The most seconds of a batch: a year. More is a mistake.
const MAX_BATCH: f64 = 365.0 * 86_400.0;

fn seconds_of_a_batch(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| *number > 0.0 && *number <= MAX_BATCH);
    number.ok_or_else(|| {
        format!("expected a number of seconds above 0 and at most {MAX_BATCH}, for example 0.05")
    })
}

/// The name of a job or container. An empty one would fit every id.
pub(super) fn name(text: &str) -> Result<String, &'static str> {
    let is_name = !text.trim().is_empty();
    is_name.then(|| text.to_owned()).ok_or("expected a name or an id, for example vae")
}

fn guard() -> impl TypedValueParser<Value = Guard> {
    let all = [Guard::Slew, Guard::Fairness, Guard::Canary];
    PossibleValuesParser::new(["slew", "fairness", "canary"]).try_map(move |word| {
        all.into_iter().find(|guard| guard.to_string() == word).ok_or("unknown guard")
    })
}

impl Orders {
    fn into_parts(self) -> (Command, How) {
        match self {
            Self::Manage(Named { name, how }) => (Command::Manage { name }, how),
            Self::Release(Named { name, how }) => (Command::Release { name }, how),
            Self::Pin { named: Named { name, how }, share } => (Command::Pin { name, share }, how),
            Self::Set { named: Named { name, how }, targets } => {
                let TargetArgs { acceptable, objective, batch_latency } = targets;
                let targets = Targets { acceptable, objective, batch_latency };
                (Command::Set { name, targets }, how)
            }
            Self::Guard { named: Named { name, how }, guard, on } => {
                (Command::Guard { name, guard, on }, how)
            }
            Self::LogLevel { filter, how } => (Command::LogLevel { filter }, how),
        }
    }
}

/// Sends the order, and prints its result.
pub(super) async fn run(orders: Orders) -> anyhow::Result<ExitCode> {
    let (command, how) = orders.into_parts();
    let reply = how.control.ask(&Request::Order(command)).await?;
    if how.json {
        print(&(plain_json(&serde_json::to_string(&reply)?) + "\n"))?;
    }
    match reply {
        Reply::Done(sentence) => {
            if !how.json {
                print(&format!("{}\n", plain(&sentence)))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Reply::Refused(refusal) => Err(refused(&refusal)),
        reply @ (Reply::Denied(_) | Reply::Failed(_) | Reply::Status(_) | Reply::Audit(_)) => {
            Err(unexpected(reply))
        }
    }
}

/// The error for a refused request. One that cannot be carried out as it was given is bad usage.
fn refused(refusal: &Refusal) -> anyhow::Error {
    let why = plain(&refusal.to_string());
    match refusal {
        Refusal::Unknown(_) | Refusal::Ambiguous(_) | Refusal::Impossible(_) => {
            BadUsage(why).into()
        }
        Refusal::Failed(_) | Refusal::Busy | Refusal::Ending => anyhow!(why),
    }
}

/// The error for a reply of another kind than requested.
pub(super) fn unexpected(reply: Reply) -> anyhow::Error {
    match reply {
        Reply::Denied(why) | Reply::Failed(why) => anyhow!(plain(&why)),
        Reply::Refused(refusal) => refused(&refusal),
        Reply::Done(_) | Reply::Status(_) | Reply::Audit(_) => {
            anyhow!("the allocator sent an answer to another request")
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches, Parser};

    use super::*;
    use crate::cli::with_negative_numbers;
    use crate::exit;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(subcommand)]
        orders: Orders,
    }

    fn order(line: &str) -> Result<String, String> {
        let words = std::iter::once("paceline").chain(line.split_whitespace());
        let matches = with_negative_numbers(Line::command()).try_get_matches_from(words);
        let line = matches.and_then(|matches| Line::from_arg_matches(&matches));
        let line = line.map_err(|error| error.to_string())?;
        Ok(serde_json::to_string(&line.orders.into_parts().0).unwrap())
    }

    #[test]
    fn command_line_becomes_the_order() {
        let targets = r#"{"acceptable":0.3,"objective":-2.0,"batch_latency":null}"#;
        for (line, expected) in [
            ("manage vae", r#"{"command":"manage","name":"vae"}"#.to_owned()),
            ("release 4f2a", r#"{"command":"release","name":"4f2a"}"#.to_owned()),
            ("pin vae 0.5", r#"{"command":"pin","name":"vae","share":0.5}"#.to_owned()),
            ("pin vae 25%", r#"{"command":"pin","name":"vae","share":0.25}"#.to_owned()),
            ("pin vae 100%", r#"{"command":"pin","name":"vae","share":1.0}"#.to_owned()),
            (
                "set vae --acceptable 0.3 --objective -2",
                format!(r#"{{"command":"set","name":"vae","targets":{targets}}}"#),
            ),
            (
                "guard vae slew off",
                r#"{"command":"guard","name":"vae","guard":"slew","on":false}"#.to_owned(),
            ),
            ("log-level debug", r#"{"command":"log-level","filter":"debug"}"#.to_owned()),
        ] {
            assert_eq!(order(line), Ok(expected), "{line}");
        }
    }

    #[test]
    fn order_that_cannot_be_carried_out_as_given_is_bad_usage() {
        let text = || "why".to_owned();
        for (refusal, code) in [
            (Refusal::Impossible(text()), exit::USAGE),
            (Refusal::Unknown(text()), exit::USAGE),
            (Refusal::Ambiguous(text()), exit::USAGE),
            (Refusal::Failed(text()), exit::FAILED),
            (Refusal::Busy, exit::FAILED),
            (Refusal::Ending, exit::FAILED),
        ] {
            let expected = format!("{:?}", ExitCode::from(code));
            assert_eq!(format!("{:?}", exit::code(&refused(&refusal))), expected, "{refusal:?}");
        }
    }

    #[test]
    fn empty_name_fits_no_job() {
        assert!(name("").is_err() && name(" ").is_err());
        assert_eq!(name("4f2a"), Ok("4f2a".to_owned()));
    }

    #[test]
    fn invalid_order_is_refused_with_allowed_values() {
        for (line, part) in [
            ("pin vae 0", "above 0 and at most 1"),
            ("pin vae 1.1", "above 0 and at most 1"),
            ("pin vae 101%", "above 0 and at most 1"),
            ("pin vae half", "\"half\""),
            ("pin vae nan", "above 0 and at most 1"),
            ("pin vae", "<SHARE>"),
            ("set vae", "--acceptable"),
            ("set vae --acceptable inf", "finite"),
            ("set vae --batch-latency 0", "above 0"),
            ("set vae --batch-latency -1", "above 0"),
            ("set vae --batch-latency 1e300", "above 0 and at most 31536000"),
            ("guard vae hope on", "fairness"),
            ("guard vae slew maybe", "off"),
        ] {
            let said = order(line).unwrap_err();
            assert!(said.contains(part), "{line}: {said}");
        }
    }
}
