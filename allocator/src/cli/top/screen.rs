//! The screen: what is drawn, and the keys that are pressed.

use std::io::{self, IsTerminal};

use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};
use paceline_api::live::snapshot::Snapshot;
use paceline_api::plain::plain;
use paceline_api::signals::Ending;
use paceline_watch::{FullScreen, events};
use tokio::sync::mpsc::Receiver;

use super::history::History;
use super::view;

/// The whole terminal, with the jobs seen last. It is restored when this is dropped.
#[derive(Debug)]
pub(super) struct Screen {
    terminal: FullScreen,
    events: Receiver<Event>,
    history: History,
    /// Why the allocator does not answer now.
    trouble: Option<String>,
}

impl Screen {
    /// Takes the terminal; `None` if standard output is none.
    pub(super) fn open() -> io::Result<Option<Self>> {
        if !io::stdout().is_terminal() {
            return Ok(None);
        }
        let (terminal, events) = (FullScreen::enter()?, events()?);
        Ok(Some(Self { terminal, events, history: History::default(), trouble: None }))
    }

    /// Draws what was seen, or why nothing was.
    pub(super) fn show(&mut self, seen: &anyhow::Result<Snapshot>) -> io::Result<()> {
        if let Ok(snapshot) = seen {
            self.history.add(snapshot);
        }
        self.trouble = seen.as_ref().err().map(|error| plain(&format!("{error:#}")));
        self.draw()
    }

    fn draw(&mut self) -> io::Result<()> {
        let Self { terminal, history, trouble, .. } = self;
        terminal.draw(|frame| view::draw(frame, history, trouble.as_deref()))
    }

    /// Waits for the key that quits. A change of size is answered at once.
    pub(super) async fn ended(&mut self) -> io::Result<Ending> {
        // Once the terminal cannot be read, only a signal quits.
        while let Some(event) = self.events.recv().await {
            if matches!(event, Event::Resize(..)) {
                self.draw()?;
            } else if let Some(ending) = ending(&event) {
                return Ok(ending);
            }
        }
        std::future::pending().await
    }
}

/// What the key asks for: q or Ctrl-C quits. In raw mode Ctrl-C sends no signal.
fn ending(event: &Event) -> Option<Ending> {
    let key = event.as_key_event().filter(|key| key.kind != KeyEventKind::Release)?;
    let KeyCode::Char(letter) = key.code else { return None };
    match letter {
        'c' if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Ending::Interrupted),
        'q' | 'Q' => Some(Ending::Terminated),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyEvent;

    use super::*;

    #[test]
    fn q_and_ctrl_c_quit_and_other_keys_do_not() {
        let pressed = |letter, modifiers| {
            ending(&Event::Key(KeyEvent::new(KeyCode::Char(letter), modifiers)))
        };
        assert_eq!(pressed('q', KeyModifiers::NONE), Some(Ending::Terminated));
        assert_eq!(pressed('Q', KeyModifiers::SHIFT), Some(Ending::Terminated));
        assert_eq!(pressed('c', KeyModifiers::CONTROL), Some(Ending::Interrupted));
        assert_eq!(pressed('c', KeyModifiers::NONE), None);
        assert_eq!(pressed('x', KeyModifiers::CONTROL), None);
        assert_eq!(ending(&Event::Resize(80, 24)), None);
        let release =
            KeyEvent::new_with_kind(KeyCode::Char('q'), KeyModifiers::NONE, KeyEventKind::Release);
        assert_eq!(ending(&Event::Key(release)), None);
    }
}
