//! `paceline top`: the jobs as they change.

mod history;
mod screen;
mod view;

use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use tokio::sync::mpsc;
use tracing::debug;

use super::control_args::ControlArgs;
use super::plain::{plain, print};
use super::status::snapshot;
use crate::exit;
use crate::signals::{Ending, Signals};
use history::History;
use screen::Screen;

/// Watch the jobs of the running allocator: loss, limit and use of CPU as they change
///
/// q or Ctrl-C ends it. Where the output is no terminal, plain lines are printed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  paceline top
  paceline top --every 5
  paceline top --times 10 > top.txt        plain lines, ten looks")]
pub(super) struct TopArgs {
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = pace)]
    every: Duration,

    /// End after so many looks
    #[arg(short = 'n', long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    times: Option<u64>,

    #[command(flatten)]
    control: ControlArgs,
}

fn pace(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    let seconds = seconds.ok_or("between 0.1 and 3600 seconds are expected")?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

pub(super) async fn run(args: TopArgs) -> anyhow::Result<ExitCode> {
    let signals = Signals::listen()?;
    let mut ending = signals.ending();
    // Whoever asks for an allocator that is not there is told so before the screen is cleared.
    let mut seen = Ok(snapshot(&args.control).await?);
    let mut history = History::default();
    let (mut screen, mut asked) = if io::stdout().is_terminal() {
        (Some(Screen::enter()?), keys()?)
    } else {
        (None, mpsc::channel(1).1)
    };
    let mut looks = 0_u64;
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
        looks += 1;
        if args.times.is_some_and(|times| looks >= times) {
            return Ok(ExitCode::SUCCESS);
        }
        let ended = tokio::select! {
            biased;
            // Cancel safe: a watch keeps its value.
            ended = ending.wait_for(Option::is_some) => ended.ok().and_then(|ended| *ended),
            // Cancel safe: a key that is not taken stays.
            Some(ended) = asked.recv() => Some(ended),
            () = tokio::time::sleep(args.every) => None,
        };
        match ended {
            Some(Ending::Interrupted) => return Ok(ExitCode::from(exit::INTERRUPTED)),
            Some(Ending::Terminated) => return Ok(ExitCode::SUCCESS),
            None => seen = snapshot(&args.control).await,
        }
    }
}

/// Tells of the key that ends it: q, or Ctrl-C, which is no signal while the screen is ours.
fn keys() -> io::Result<mpsc::Receiver<Ending>> {
    let (ask, asked) = mpsc::channel(1);
    // A thread of its own: a read from a terminal cannot be given up.
    std::thread::Builder::new().name("paceline-keys".to_owned()).spawn(move || {
        let ending = io::stdin().lock().bytes().map_while(Result::ok).find_map(|key| match key {
            b'q' | b'Q' => Some(Ending::Terminated),
            CTRL_C => Some(Ending::Interrupted),
            _ => None,
        });
        if ending.is_some_and(|ending| ask.blocking_send(ending).is_err()) {
            debug!("it ends already");
        }
    })?;
    Ok(asked)
}

/// What a terminal sends for it.
const CTRL_C: u8 = 3;
