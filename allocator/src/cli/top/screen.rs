//! The terminal screen, which is restored at the end.

use std::io::{self, Stdout, Write};

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::style::{Attribute, Print, SetAttribute};
use crossterm::terminal::{
    self, BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen,
};
use crossterm::{execute, queue};

/// The style of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Bold,
    Dim,
}

/// A line that fits the screen, without line end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) tone: Tone,
    pub(super) text: String,
}

/// The whole terminal. It is restored when this is dropped.
#[derive(Debug)]
pub(super) struct Screen(Stdout);

impl Screen {
    pub(super) fn enter() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        let mut screen = Self(io::stdout());
        execute!(screen.0, EnterAlternateScreen, Hide)?;
        Ok(screen)
    }

    /// Draws the lines that `lines` returns for the terminal's size in columns and rows.
    pub(super) fn draw(
        &mut self,
        lines: impl FnOnce((usize, usize)) -> Vec<Line>,
    ) -> io::Result<()> {
        let (columns, rows) = match terminal::size()? {
            // A serial line reports no size.
            (0, _) | (_, 0) => (80, 24),
            size => size,
        };
        let out = &mut self.0;
        queue!(out, BeginSynchronizedUpdate)?;
        for (row, Line { tone, text }) in (0..rows).zip(lines((columns.into(), rows.into()))) {
            queue!(out, MoveTo(0, row))?;
            match tone {
                Tone::Plain => {}
                Tone::Bold => queue!(out, SetAttribute(Attribute::Bold))?,
                Tone::Dim => queue!(out, SetAttribute(Attribute::Dim))?,
            }
            queue!(out, Print(text), SetAttribute(Attribute::Reset))?;
            queue!(out, Clear(ClearType::UntilNewLine))?;
        }
        queue!(out, Clear(ClearType::FromCursorDown), EndSynchronizedUpdate)?;
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Errors are ignored: a closed terminal needs no restoring.
        drop(execute!(self.0, Show, LeaveAlternateScreen));
        drop(terminal::disable_raw_mode());
    }
}
