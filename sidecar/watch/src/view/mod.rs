//! What the terminal shows, and what its keys do. Independent of a real terminal.

mod chart;
mod job;
mod list;

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Span};

use crate::jobs::{Group, Jobs};

/// What follows a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    On,
    Quit,
    Interrupt,
}

/// What the user looks at.
#[derive(Clone, Debug)]
pub(crate) struct Screen {
    /// Whether one job was named: there is no list then.
    is_single: bool,
    /// Where jobs are looked for, in words.
    places: String,
    /// The process whose job is chosen in the list, by its instance; at first the first one.
    chosen: Option<String>,
    is_open: bool,
    by_time: bool,
}

impl Screen {
    pub(crate) fn new(is_single: bool, places: String) -> Self {
        Self { is_single, places, chosen: None, is_open: is_single, by_time: false }
    }

    /// Follows a key.
    pub(crate) fn press(&mut self, key: KeyEvent, jobs: &Jobs) -> Flow {
        let groups = jobs.groups();
        let place = self.place(&groups);
        #[expect(clippy::wildcard_enum_match_arm, reason = "other keys do nothing")]
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return Flow::Interrupt;
            }
            KeyCode::Esc | KeyCode::Left | KeyCode::Backspace
                if self.is_open && !self.is_single =>
            {
                self.is_open = false;
            }
            KeyCode::Char('q' | 'Q') | KeyCode::Esc => return Flow::Quit,
            KeyCode::Enter | KeyCode::Right if !groups.is_empty() => {
                self.choose(&groups, place);
                self.is_open = true;
            }
            KeyCode::Up | KeyCode::Char('k') => self.choose(&groups, place.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.choose(&groups, place + 1),
            KeyCode::Home => self.choose(&groups, 0),
            KeyCode::End => self.choose(&groups, groups.len()),
            KeyCode::Char('s' | 'S') => self.by_time = !self.by_time,
            _ => {}
        }
        Flow::On
    }

    /// Chooses the job at a place, or the last one.
    fn choose(&mut self, groups: &[Group<'_>], place: usize) {
        let last = groups.len().saturating_sub(1);
        if let Some(group) = groups.get(place.min(last)) {
            self.chosen = Some(group.head.progress.instance.clone());
        }
    }

    /// The place of the chosen job: any of its ranks may have been chosen.
    fn place(&self, groups: &[Group<'_>]) -> usize {
        let is_chosen = |group: &Group<'_>| {
            group.ranks.iter().any(|rank| Some(&rank.progress.instance) == self.chosen.as_ref())
        };
        groups.iter().position(is_chosen).unwrap_or(0)
    }

    /// Draws the whole screen.
    pub(crate) fn draw(&self, frame: &mut Frame<'_>, jobs: &Jobs, now: Instant) {
        let groups = jobs.groups();
        let place = self.place(&groups);
        match groups.get(place) {
            Some(group) if self.is_open => {
                job::draw(frame, group, now, self.by_time);
                self.hint(frame);
            }
            _ => {
                list::draw(frame, jobs, &groups, place, self);
                self.hint(frame);
            }
        }
    }

    /// The keys, in the last row.
    fn hint(&self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let axis = if self.by_time { "steps" } else { "time" };
        let keys: &[(&str, &str)] = match (self.is_open, self.is_single) {
            (true, true) => &[("s", axis), ("q", "quit")],
            (true, false) => {
                &[("esc", "all jobs"), ("↑↓", "other job"), ("s", axis), ("q", "quit")]
            }
            (false, _) => &[("↑↓", "choose"), ("enter", "open"), ("s", axis), ("q", "quit")],
        };
        let words = keys.iter().flat_map(|(key, what)| {
            [Span::from((*key).to_owned()).bold(), Span::from(format!(" {what}   "))]
        });
        let row = Rect { y: area.bottom().saturating_sub(1), height: area.height.min(1), ..area };
        frame.render_widget(words.collect::<Line<'_>>().style(Style::new().dim()), row);
    }
}

/// Part of an area: the rows from `from` on, `height` of them at most.
fn rows(area: Rect, from: u16, height: u16) -> Rect {
    let from = from.min(area.height);
    Rect { y: area.y + from, height: height.min(area.height - from), ..area }
}

/// A number of rows, at most as many as a terminal can have.
fn height(rows: usize) -> u16 {
    u16::try_from(rows).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
