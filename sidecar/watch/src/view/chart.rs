//! The chart of a job's loss: raw, smoothed, and on held-out data, with the targets.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style, Stylize};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType, Paragraph};

use crate::figures::{float, number, short, span, whole};
use crate::jobs::Job;
use crate::past::Point;
use crate::snapshot::MAX_LINEAR;

/// The colours of the lines.
const RAW: Color = Color::Cyan;
const VALIDATION: Color = Color::Magenta;
const TARGET: Color = Color::Green;
/// The rows below which nothing is drawn.
const MIN_ROWS: u16 = 4;

/// A line of the chart.
type Dots = Vec<(f64, f64)>;

/// Draws the chart, over steps or over time.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, job: &Job, by_time: bool) {
    if area.height < MIN_ROWS {
        return;
    }
    let block = Block::bordered().title(legend(job)).border_style(Style::new().dim());
    let by_time = by_time || job.past.points.iter().all(|point| point.step.is_none());
    let targets = job.progress.targets;
    let targets: Vec<f64> = [targets.acceptable, targets.objective].into_iter().flatten().collect();
    let Some(lines) = Lines::new(job, by_time, &targets) else {
        frame.render_widget(Paragraph::new("No loss yet.").block(block), area);
        return;
    };
    let levels: Vec<Dots> = targets
        .iter()
        .map(|target| lines.vertical.place(*target))
        .map(|height| lines.horizontal.map(|at| (at, height)).to_vec())
        .collect();
    let line = |data, style: Style| {
        Dataset::default()
            .marker(Marker::Braille)
            .graph_type(GraphType::Line)
            .data(data)
            .style(style)
    };
    let mut sets: Vec<_> =
        levels.iter().map(|level| line(level, Style::new().fg(TARGET))).collect();
    sets.push(line(&lines.raw, Style::new().fg(RAW)));
    sets.push(line(&lines.validation, Style::new().fg(VALIDATION)));
    sets.push(line(&lines.smoothed, Style::new().bold()));
    let [first, last] = lines.horizontal;
    let name = |at: f64| if by_time { span(at) } else { whole_of(at) };
    let horizontal = [first, first / 2.0 + last / 2.0, last].map(name);
    let [low, high] = lines.vertical.bounds;
    let vertical =
        [low, low / 2.0 + high / 2.0, high].map(|at| short(Some(lines.vertical.value(at))));
    let axis = |bounds, labels: [String; 3]| {
        Axis::default().bounds(bounds).labels(labels).style(Style::new().dim())
    };
    let chart = Chart::new(sets)
        .block(block)
        .x_axis(axis(lines.horizontal, horizontal))
        .y_axis(axis(lines.vertical.bounds, vertical));
    frame.render_widget(chart, area);
}

/// What the lines are, and their last values.
fn legend(job: &Job) -> Line<'static> {
    let progress = &job.progress;
    let last = job.past.points.iter().rev().find_map(|point| point.loss).or(progress.eval.value);
    let mut words = vec![
        Span::from(format!(" smoothed {} ", number(progress.signals.loss_smoothed))).bold(),
        Span::from(format!(" raw {} ", number(last))).fg(RAW),
    ];
    if let Some(validation) = progress.validation {
        let value = number(Some(validation.value));
        words.push(Span::from(format!(" validation {value} ")).fg(VALIDATION));
    }
    if progress.targets.acceptable.is_some() || progress.targets.objective.is_some() {
        words.push(Span::from(" targets ").fg(TARGET));
    }
    Line::from(words)
}

fn whole_of(at: f64) -> String {
    let steps = std::time::Duration::try_from_secs_f64(at.max(0.0)).unwrap_or_default();
    whole(steps.as_secs())
}

/// The vertical axis.
#[derive(Clone, Copy, Debug)]
struct Scale {
    is_log: bool,
    bounds: [f64; 2],
}

impl Scale {
    /// A scale of some losses; logarithmic if they differ widely.
    fn new(values: &[f64]) -> Option<Self> {
        let low = values.iter().copied().reduce(f64::min)?;
        let high = values.iter().copied().reduce(f64::max)?;
        let is_log = low > 0.0 && high / MAX_LINEAR > low;
        let mut scale = Self { is_log, bounds: [0.0, 1.0] };
        let [low, high] = [low, high].map(|value| scale.place(value));
        // Losses that hardly differ are drawn as what they are: a flat line.
        let least = (low.abs().max(high.abs()) * 0.01).max(f64::MIN_POSITIVE);
        let room = ((high / 2.0 - low / 2.0) * 0.1).max(least);
        scale.bounds = [low - room, high + room];
        scale.bounds.iter().all(|bound| bound.is_finite()).then_some(scale)
    }

    fn place(self, value: f64) -> f64 {
        if self.is_log { value.max(f64::MIN_POSITIVE).log10() } else { value }
    }

    fn value(self, place: f64) -> f64 {
        if self.is_log { 10_f64.powf(place) } else { place }
    }
}

/// The lines of a job, ready to be drawn.
#[derive(Debug)]
struct Lines {
    raw: Dots,
    smoothed: Dots,
    validation: Dots,
    horizontal: [f64; 2],
    vertical: Scale,
}

impl Lines {
    /// `None` without a loss.
    fn new(job: &Job, by_time: bool, targets: &[f64]) -> Option<Self> {
        let start = job.past.started_at;
        let at = |point: &Point| {
            if by_time { Some(point.to - start) } else { point.step.map(float) }
        };
        let values = |value: fn(&Point) -> Option<f64>| -> Dots {
            let points = job.past.points.iter();
            points.filter_map(|point| Some((at(point)?, value(point)?))).collect()
        };
        let raw = values(|point| point.loss);
        let smoothed = values(|point| point.smoothed);
        let validation = values(|point| point.validation);
        let all = || raw.iter().chain(&smoothed).chain(&validation);
        let heights: Vec<f64> =
            all().map(|(_, value)| *value).chain(targets.iter().copied()).collect();
        let first = all().map(|(at, _)| *at).reduce(f64::min)?;
        let last = all().map(|(at, _)| *at).reduce(f64::max)?.max(first + 1.0);
        let vertical = Scale::new(&heights)?;
        let placed = |dots: Dots| -> Dots {
            dots.into_iter().map(|(at, value)| (at, vertical.place(value))).collect()
        };
        Some(Self {
            raw: placed(raw),
            smoothed: placed(smoothed),
            validation: placed(validation),
            horizontal: [first, last],
            vertical,
        })
    }
}
