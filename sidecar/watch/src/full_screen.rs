//! The whole terminal: it is drawn, its events are read, and it is restored at the end.

use std::fmt;
use std::io;

use crossterm::event::{self, Event};
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, size};
use ratatui::layout::Rect;
use ratatui::{DefaultTerminal, Frame, TerminalOptions, Viewport};
use tokio::sync::mpsc;

/// The most events that wait to be read.
const MAX_EVENTS: usize = 64;
/// The size of a terminal that does not know its own, such as a serial line: columns and rows.
const USUAL_SIZE: (u16, u16) = (80, 24);

/// The whole terminal. It is restored when this is dropped, and before the message of a panic.
pub struct FullScreen {
    terminal: DefaultTerminal,
    area: Rect,
}

impl FullScreen {
    /// Takes the terminal: raw mode, and its second screen.
    ///
    /// # Errors
    /// If the terminal cannot be set or written to.
    pub fn enter() -> io::Result<Self> {
        let area = area(size()?);
        let options = TerminalOptions { viewport: Viewport::Fixed(area) };
        // From here on, dropping this restores the terminal, also if a later step fails.
        let screen = Self { terminal: ratatui::try_init_with_options(options)?, area };
        execute!(io::stdout(), EnterAlternateScreen)?;
        Ok(screen)
    }

    /// Draws what has changed since the last drawing, in the terminal's present size.
    ///
    /// # Errors
    /// If the terminal cannot be written to.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        let area = area(size()?);
        if area != self.area {
            self.terminal.resize(area)?;
            self.area = area;
        }
        self.terminal.draw(draw).map(drop)
    }
}

impl fmt::Debug for FullScreen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FullScreen").field("area", &self.area).finish_non_exhaustive()
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        // A closed terminal needs no restoring.
        drop(ratatui::try_restore());
    }
}

fn area(size: (u16, u16)) -> Rect {
    let (columns, rows) = if size.0 == 0 || size.1 == 0 { USUAL_SIZE } else { size };
    Rect::new(0, 0, columns, rows)
}

/// Reads keys and changes of size on a thread of its own, which ends with the process: a read from a
/// terminal cannot be given up. The channel closes if a read fails.
///
/// # Errors
/// If the thread cannot start.
pub fn events() -> io::Result<mpsc::Receiver<Event>> {
    let (sender, receiver) = mpsc::channel(MAX_EVENTS);
    std::thread::Builder::new().name("paceline-keys".to_owned()).spawn(move || {
        while let Ok(event) = event::read() {
            if sender.blocking_send(event).is_err() {
                return;
            }
        }
    })?;
    Ok(receiver)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_without_a_size_has_the_usual_one() {
        assert_eq!(area((120, 40)), Rect::new(0, 0, 120, 40));
        for unknown in [(0, 0), (0, 24), (80, 0)] {
            assert_eq!(area(unknown), Rect::new(0, 0, 80, 24));
        }
    }
}
