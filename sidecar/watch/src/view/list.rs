//! All jobs, a row each, and the chart of the chosen one below.

use ratatui::Frame;
use ratatui::layout::Constraint;
use ratatui::style::{Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row, Table, TableState, Wrap};

use super::{Screen, chart, height, rows};
use crate::jobs::{Group, Jobs};
use crate::snapshot::{Figures, fit, place as where_it_is};

/// The rows of a chart, below which it is left out.
const MIN_CHART: u16 = 8;
/// The columns of a curve.
const CURVE: u16 = 12;

pub(super) fn draw(
    frame: &mut Frame<'_>,
    jobs: &Jobs,
    groups: &[Group<'_>],
    place: usize,
    screen: &Screen,
) {
    let area = frame.area();
    frame.render_widget(Line::from(title(jobs, groups)).bold(), rows(area, 0, 1));
    let body = rows(area, 1, area.height.saturating_sub(2));
    let Some(chosen) = groups.get(place) else {
        let text = if jobs.turns == 0 {
            "Looking for jobs.".to_owned()
        } else {
            format!(
                "Looked at {}. A job that starts appears here:\n\npaceline-sidecar exec -- python \
                 train.py",
                screen.places
            )
        };
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: false }), body);
        return;
    };
    let wanted = height(groups.len() + 1);
    let room = body.height.saturating_sub(wanted);
    let table = if room >= MIN_CHART { wanted } else { body.height };
    table_of(frame, groups, place, rows(body, 0, table));
    chart::draw(frame, rows(body, table, body.height), chosen.head, screen.by_time);
}

fn title(jobs: &Jobs, groups: &[Group<'_>]) -> String {
    let over = groups.iter().filter(|group| group.is_over()).count();
    let ended = if over > 0 { format!(", {over} ended") } else { String::new() };
    let more =
        if jobs.left_out > 0 { format!(", {} not shown", jobs.left_out) } else { String::new() };
    format!("Paceline: {} running{ended}{more}", groups.len() - over)
}

/// A column: its heading, its columns, and its figure.
type Column = (&'static str, Constraint, fn(&Figures, &Group<'_>) -> String);

const COLUMNS: [Column; 9] = [
    ("Job", Constraint::Fill(1), |figures, _| figures.name.clone()),
    ("State", Constraint::Length(13), |figures, _| figures.state.to_owned()),
    ("Loss", Constraint::Length(9), |figures, _| figures.loss.clone()),
    ("Done", Constraint::Length(7), |figures, _| figures.done.clone()),
    ("Left", Constraint::Length(11), |figures, _| figures.left.clone()),
    ("Batch", Constraint::Length(9), |figures, _| figures.batch.clone()),
    ("Curve", Constraint::Length(CURVE), |figures, _| figures.curve.clone()),
    ("Throttled", Constraint::Length(9), |figures, _| figures.throttled.clone()),
    ("Address", Constraint::Min(23), |_, group| where_it_is(group.head)),
];

/// The number of columns that fit.
const fn columns_for(width: u16) -> usize {
    match width {
        0..54 => 3,
        54..76 => 5,
        76..96 => 7,
        96..120 => 8,
        _ => 9,
    }
}

fn table_of(
    frame: &mut Frame<'_>,
    groups: &[Group<'_>],
    place: usize,
    area: ratatui::layout::Rect,
) {
    let shown = COLUMNS.get(..columns_for(area.width)).unwrap_or(&COLUMNS);
    let body = groups.iter().map(|group| {
        let figures = Figures::new(group, usize::from(CURVE));
        let row = Row::new(shown.iter().map(|(_, _, cell)| cell(&figures, group)));
        if group.is_over() { row.dim() } else { row }
    });
    let head = Row::new(shown.iter().map(|(name, _, _)| fit(name, name.len()))).dim();
    let table = Table::new(body, shown.iter().map(|(_, width, _)| *width))
        .header(head)
        .row_highlight_style(Style::new().reversed());
    let mut state = TableState::new().with_selected(place);
    frame.render_stateful_widget(table, area, &mut state);
}
