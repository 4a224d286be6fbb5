//! `paceline top`: the jobs, updated continuously.

mod history;
mod screen;
mod view;

use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use paceline_api::plain::{plain, print};
use paceline_api::signals::{Ending, Signals};
use tokio::sync::mpsc;
use tracing::debug;

use super::control_args::ControlArgs;
use super::status::snapshot;
use history::History;
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
    #[arg(short = 'n', long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
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
    let mut ending = signals.ending();
    // A missing allocator is reported before the screen is cleared.
    let mut seen = Ok(snapshot(&args.control).await?);
    let mut history = History::default();
    let (mut screen, mut asked) = if io::stdout().is_terminal() {
        (Some(Screen::enter()?), keys()?)
    } else {
        (None, mpsc::channel(1).1)
    };
    let mut updates = 0_u64;
    loop {
        if let Ok(snapshot) = &seen {
            history.add(snapshot);
        }
        match (&mut screen, &seen) {
            (Some(screen), seen) => {
                let trouble = seen.as_ref().err().map(|error| plain(&format!("{error:#}")));
                screen.draw(|size| view::screen(&history, trouble.as_deref(), size))?;
            }
            (None, Ok(snapshot)) => print(&view::lines(snapshot))?,
            (None, Err(_)) => return seen.map(|_| ExitCode::SUCCESS),
        }
        updates += 1;
        if args.times.is_some_and(|times| updates >= times) {
            return Ok(ExitCode::SUCCESS);
        }
        let ended = tokio::select! {
            biased;
            // Cancel safe: a watch keeps its value.
            ended = ending.wait_for(Option::is_some) => ended.ok().and_then(|ended| *ended),
            // Cancel safe: an unread key stays in the channel.
            Some(ended) = asked.recv() => Some(ended),
            () = tokio::time::sleep(args.every) => None,
        };
        match ended {
            Some(ending) => return Ok(ending.into()),
            None => seen = snapshot(&args.control).await,
        }
    }
}

/// Reports the key that quits: q or Ctrl-C. In raw mode Ctrl-C sends no signal.
fn keys() -> io::Result<mpsc::Receiver<Ending>> {
    let (ask, asked) = mpsc::channel(1);
    // A thread of its own: a read from a terminal cannot be cancelled.
    std::thread::Builder::new().name("paceline-keys".to_owned()).spawn(move || {
        let ending = io::stdin().lock().bytes().map_while(Result::ok).find_map(|key| match key {
            b'q' | b'Q' => Some(Ending::Terminated),
            CTRL_C => Some(Ending::Interrupted),
            _ => None,
        });
        if ending.is_some_and(|ending| ask.blocking_send(ending).is_err()) {
            debug!("top is already ending");
        }
    })?;
    Ok(asked)
}

/// The byte that a terminal sends for Ctrl-C.
const CTRL_C: u8 = 3;
