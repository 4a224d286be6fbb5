//! One job: its state, its progress, the chart of its loss, and facts.

use std::time::Instant;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{LineGauge, Paragraph};

use super::{chart, height, rows};
use crate::facts::{self, facts};
use crate::figures::percent;
use crate::jobs::{Group, Job};
use crate::snapshot::{fact_lines, place, title, wrap};

/// The rows of a chart, below which facts are left out for it.
const MIN_CHART: u16 = 7;
/// The most rows of what needs attention.
const MAX_TROUBLE: usize = 4;

pub(super) fn draw(frame: &mut Frame<'_>, group: &Group<'_>, now: Instant, by_time: bool) {
    let job = group.head;
    let area = frame.area();
    let body = rows(area, 0, area.height.saturating_sub(1));
    let columns = usize::from(area.width);
    let mut used = 0;
    let mut put = |frame: &mut Frame<'_>, lines: Vec<Line<'static>>| {
        let tall = height(lines.len());
        frame.render_widget(Paragraph::new(lines), rows(body, used, tall));
        used = used.saturating_add(tall);
    };
    put(frame, head(job, now, columns));
    put(frame, trouble(job, columns));
    if let Some(ratio) = job.progress.signals.progress_ratio {
        gauge(frame, job, ratio, rows(body, used, 1));
        used = used.saturating_add(1);
    }
    let facts = fact_rows(group, now, columns);
    let rest = body.height.saturating_sub(used);
    // The chart takes what facts leave, and in a low terminal half of it.
    let chart_rows = rest.saturating_sub(height(facts.len())).max(MIN_CHART).min(rest);
    let chart_rows = if rest < MIN_CHART + 4 { 0 } else { chart_rows };
    chart::draw(frame, rows(body, used, chart_rows), job, by_time);
    let below = rows(body, used.saturating_add(chart_rows), rest);
    frame.render_widget(Paragraph::new(facts), below);
}

/// The name and the state, and the address if there is room.
fn head(job: &Job, now: Instant, columns: usize) -> Vec<Line<'static>> {
    let title = title(job, now);
    let address = place(job);
    let room = columns.saturating_sub(title.chars().count() + 2);
    if room >= address.chars().count() {
        let gap = " ".repeat(columns - title.chars().count() - address.chars().count());
        return vec![Line::from(vec![Span::from(title).bold(), Span::from(gap + &address).dim()])];
    }
    let mut lines: Vec<_> =
        wrap(&title, columns).into_iter().map(|part| Line::from(part).bold()).collect();
    lines.extend(wrap(&address, columns).into_iter().map(|part| Line::from(part).dim()));
    lines
}

fn trouble(job: &Job, columns: usize) -> Vec<Line<'static>> {
    let all = facts::trouble(job).into_iter().flat_map(|line| wrap(&line, columns));
    all.take(MAX_TROUBLE).map(|part| Line::from(part).fg(Color::Red)).collect()
}

fn gauge(frame: &mut Frame<'_>, job: &Job, ratio: f64, area: Rect) {
    let ratio = if ratio.is_finite() { ratio.clamp(0.0, 1.0) } else { 0.0 };
    let left = facts::left(job).map_or_else(String::new, |left| format!(", {left}"));
    let gauge = LineGauge::default()
        .ratio(ratio)
        .label(format!("{}{left}", percent(ratio)))
        .filled_style(Style::new().fg(Color::Cyan))
        .filled_symbol("█")
        .unfilled_symbol("░");
    frame.render_widget(gauge, area);
}

fn fact_rows(group: &Group<'_>, now: Instant, columns: usize) -> Vec<Line<'static>> {
    let lines = fact_lines(&facts(group, now), columns).into_iter();
    lines
        .map(|(label, words)| Line::from(vec![Span::from(label).dim(), Span::from(words)]))
        .collect()
}
