//! `paceline top`: the jobs, updated continuously.

#[cfg(not(feature = "watch"))]
mod absent;
#[cfg(feature = "watch")]
mod history;
#[cfg(feature = "watch")]
mod screen;
#[cfg(feature = "watch")]
mod view;

use std::io;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use paceline_api::figures::{moment, number, share};
use paceline_api::live::snapshot::{JobView, Snapshot};
use paceline_api::plain::{fit, print_if_read};
use paceline_api::signals::{Ending, Signals};
use paceline_api::usage::whole_number;

use super::control_args::ControlArgs;
use super::status::{snapshot, standing};
#[cfg(not(feature = "watch"))]
use absent::Screen;
#[cfg(feature = "watch")]
use screen::Screen;

/// Watch the jobs of the running allocator: loss, limit and CPU use
///
/// Press q or Ctrl-C to quit. If the output is not a terminal, plain lines are printed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  paceline top
  paceline top --every 5
  paceline top --times 10 > top.txt        ten updates as plain lines")]
pub(super) struct TopArgs {
    /// Seconds between two updates
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = pace)]
    every: Duration,

    /// Quit after this number of updates
    #[arg(short = 'n', long, value_name = "NUMBER", value_parser = whole_number(1_u64, 1_000_000_000))]
    times: Option<u64>,

    #[command(flatten)]
    control: ControlArgs,
}

fn pace(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    let seconds = seconds.ok_or("expected 0.1 to 3600 seconds")?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

pub(super) async fn run(args: TopArgs) -> anyhow::Result<ExitCode> {
    let signals = Signals::listen()?;
    let ended = show(&args, Output::open, signals.ended()).await?;
    Ok(ended.map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// Shows the jobs until the user ends it; `None` after the last update. An allocator that does not
/// answer delays no end.
async fn show(
    args: &TopArgs,
    open: impl FnOnce() -> io::Result<Output>,
    asked: impl Future<Output = Ending>,
) -> anyhow::Result<Option<Ending>> {
    let mut asked = pin!(asked);
    // A missing allocator is reported before the screen is taken.
    let mut seen = tokio::select! {
        biased;
        ending = &mut asked => return Ok(Some(ending)),
        first = snapshot(&args.control) => Ok(first?),
    };
    let mut output = open()?;
    let mut updates = 0_u64;
    loop {
        match &mut output {
            Output::Screen(screen) => screen.show(&seen)?,
            Output::Lines => {
                if !print_if_read(&lines(&seen?))? {
                    return Ok(None);
                }
            }
        }
        updates += 1;
        if args.times.is_some_and(|times| updates >= times) {
            return Ok(None);
        }
        let next = async {
            tokio::time::sleep(args.every).await;
            snapshot(&args.control).await
        };
        seen = tokio::select! {
            biased;
            ending = &mut asked => return Ok(Some(ending)),
            // Cancel safe: an unread key stays in the channel.
            ending = output.ended() => return Ok(Some(ending?)),
            next = next => next,
        };
    }
}

/// Where the jobs are shown.
enum Output {
    Screen(Box<Screen>),
    /// Standard output is a pipe or a file, or this build has no screen.
    Lines,
}

impl Output {
    fn open() -> io::Result<Self> {
        Ok(Screen::open()?.map_or(Self::Lines, |screen| Self::Screen(Box::new(screen))))
    }

    /// Waits for the key that quits. Lines have none.
    async fn ended(&mut self) -> io::Result<Ending> {
        match self {
            Self::Screen(screen) => screen.ended().await,
            Self::Lines => std::future::pending().await,
        }
    }
}

/// One line for each job, for files and pipes.
fn lines(snapshot: &Snapshot) -> String {
    let line = |job: &JobView| {
        format!(
            "{} {} {} loss {} use {} limit {}\n",
            moment(snapshot.now),
            fit(&job.job, 40),
            standing(job.standing),
            number(job.loss.or(job.last_loss)),
            share(job.cpu),
            share(job.limit),
        )
    };
    snapshot.jobs.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use paceline_server::control::Reply;
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    use tokio::net::UnixListener;

    use super::*;
    use crate::cli::status::tests::example;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        top: TopArgs,
    }

    #[tokio::test]
    async fn signal_ends_the_wait_for_a_silent_allocator() {
        let answer = serde_json::to_vec(&Reply::Status(Box::default())).unwrap();
        for answers in [0, 1] {
            let folder = tempfile::tempdir().unwrap();
            let socket = folder.path().join("control.sock");
            let allocator = UnixListener::bind(&socket).unwrap();
            let words = ["top", "--every", "0.1", "--control", socket.to_str().unwrap()];
            let Line { top } = Line::try_parse_from(words).unwrap();
            let asked = async {
                for _ in 0..answers {
                    let (mut client, _) = allocator.accept().await.unwrap();
                    BufReader::new(&mut client).read_line(&mut String::new()).await.unwrap();
                    client.write_all(&answer).await.unwrap();
                }
                // The next request gets no answer.
                let _silent = allocator.accept().await.unwrap();
                Ending::Interrupted
            };
            let ended = show(&top, || Ok(Output::Lines), asked).await.unwrap();
            assert_eq!(ended, Some(Ending::Interrupted), "after {answers} answers");
        }
    }

    #[test]
    fn lines_are_one_a_job_and_escaped() {
        let text = lines(&example());
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains(" vae managed loss 118.20 use 48.0 % limit 50.0 %\n"), "{text}");
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    }
}
