//! The jobs on the whole terminal, until the user quits.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{Event, KeyEventKind};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};

use crate::clock;
use crate::discover::Search;
use crate::error::Ending;
use crate::full_screen::{FullScreen, events};
use crate::view::{Flow, Screen};
use crate::watcher::{self, Board, Rest};

/// The screen is drawn at least this often, since it shows times.
const REDRAW: Duration = Duration::from_secs(1);
/// The least time between two drawings.
const FRAME: Duration = Duration::from_millis(50);

/// Shows jobs until the user quits; with `is_single`, the one that is searched for.
pub(crate) async fn run(search: &Search, is_single: bool) -> io::Result<Ending> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let board = Arc::new(Board::new());
    let screen = Screen::new(is_single, search.places());
    // In a box: a few hundred bytes of state.
    tokio::select! {
        ended = Box::pin(show(&board, screen)) => ended,
        () = Box::pin(watcher::run(search, &board, Rest::Never)) => Ok(Ending::Done),
        _ = interrupt.recv() => Ok(Ending::Interrupted),
        _ = terminate.recv() => Ok(Ending::Done),
        _ = hang_up.recv() => Ok(Ending::Done),
    }
}

async fn show(board: &Board, mut screen: Screen) -> io::Result<Ending> {
    let mut changed = board.subscribe();
    let mut keys = events()?;
    let mut terminal = FullScreen::enter()?;
    loop {
        board.read(|jobs| terminal.draw(|frame| screen.draw(frame, jobs, clock::now())))?;
        sleep(FRAME).await;
        tokio::select! {
            biased;
            key = keys.recv() => {
                let mut next = key;
                while let Some(event) = next {
                    let flow = board.read(|jobs| press(&mut screen, &event, jobs));
                    match flow {
                        Flow::On => {}
                        Flow::Quit => return Ok(Ending::Done),
                        Flow::Interrupt => return Ok(Ending::Interrupted),
                    }
                    next = keys.try_recv().ok();
                }
                if keys.is_closed() && keys.is_empty() {
                    return Ok(Ending::Done);
                }
            }
            // Whether it changed or the time is up, the screen is drawn.
            _ = timeout(REDRAW, changed.changed()) => {}
        }
    }
}

fn press(screen: &mut Screen, event: &Event, jobs: &crate::jobs::Jobs) -> Flow {
    // Every other event, such as a new size, is answered by the next drawing.
    match event.as_key_event() {
        Some(key) if key.kind != KeyEventKind::Release => screen.press(key, jobs),
        _ => Flow::On,
    }
}
