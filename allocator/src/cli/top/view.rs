//! The content of the screen, whatever it is drawn on.

use paceline_api::figures::{number, share, span};
use paceline_api::live::snapshot::JobView;
use paceline_api::plain::{fit, left};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Rect};
use ratatui::style::Stylize;
use ratatui::text::Line;
use ratatui::widgets::{Row, Table};

use super::history::History;
use crate::cli::status::{heading, standing};

/// Draws the jobs seen last. `trouble` replaces the first line, which is out of date then.
pub(super) fn draw(frame: &mut Frame<'_>, history: &History, trouble: Option<&str>) {
    let area = frame.area();
    let columns = usize::from(area.width);
    let snapshot = &history.last;
    let mut row = 0;
    let mut add = |frame: &mut Frame<'_>, line: Line<'static>| {
        frame.render_widget(line, rows(area, row, 1));
        row += 1;
    };
    for (at, text) in heading(snapshot).into_iter().enumerate() {
        let line = match trouble.filter(|_| at == 0) {
            Some(trouble) => Line::from(fit(trouble, columns)).bold(),
            None => Line::from(fit(&text, columns)),
        };
        add(frame, line);
    }
    // The head of the table and the last line.
    let room = usize::from(area.height).saturating_sub(usize::from(row) + 2);
    let jobs = snapshot.jobs.len();
    let shown = if jobs > room { room.saturating_sub(1) } else { room }.min(jobs);
    let table = Columns::for_width(area.width).table(history, shown);
    let height = u16::try_from(shown + 1).unwrap_or(u16::MAX);
    frame.render_widget(table, rows(area, row, height));
    row = row.saturating_add(height);
    let mut add = |frame: &mut Frame<'_>, text: &str| {
        frame.render_widget(Line::from(fit(text, columns)).dim(), rows(area, row, 1));
        row = row.saturating_add(1);
    };
    match jobs - shown {
        0 if jobs == 0 => add(frame, "no container has opted in"),
        0 => {}
        more => add(frame, &format!("and {more} more, for a taller terminal")),
    }
    add(frame, "█ used  ░ up to the limit    q quits");
}

/// The rows of the area from `first` on, as many of them as there are.
fn rows(area: Rect, first: u16, count: u16) -> Rect {
    let first = first.min(area.height);
    Rect { y: area.y + first, height: count.min(area.height - first), ..area }
}

/// The columns of the table: their widths grow with the terminal.
struct Columns {
    curve: usize,
    bar: usize,
    /// The width and the alignment of each column that fits, at least in part.
    shown: Vec<(u16, Alignment)>,
}

impl Columns {
    fn for_width(width: u16) -> Self {
        let (name, curve, bar) = if width >= 110 { (20, 16, 24) } else { (14, 10, 12) };
        let (left, right) = (Alignment::Left, Alignment::Right);
        let wanted = [
            (name, left),
            (8, left),
            (9, right),
            (curve, left),
            (bar, left),
            (7, right),
            (7, right),
            (width, left),
        ];
        let mut shown = Vec::new();
        let mut free = width;
        for (wanted, alignment) in wanted {
            shown.push((wanted.min(free), alignment));
            // A space follows each column.
            free = free.saturating_sub(wanted + 1);
            if free == 0 {
                break;
            }
        }
        Self { curve: curve.into(), bar: bar.into(), shown }
    }

    /// The table of the first jobs.
    fn table(&self, history: &History, jobs: usize) -> Table<'static> {
        let head = ["job", "standing", "loss", "", "use of CPU", "use", "limit", "class  why"];
        let now = history.last.now;
        let rows =
            history.last.jobs.iter().take(jobs).map(|job| {
                self.row(self.cells(job, &history.losses(&job.container, self.curve), now))
            });
        Table::new(rows, self.shown.iter().map(|(width, _)| Constraint::Length(*width)))
            .header(self.row(head.map(str::to_owned)).bold())
            .column_spacing(1)
    }

    fn row(&self, cells: [String; 8]) -> Row<'static> {
        Row::new(self.shown.iter().zip(cells).map(|((width, alignment), text)| {
            Line::from(fit(&text, usize::from(*width))).alignment(*alignment)
        }))
    }

    fn cells(&self, job: &JobView, losses: &[f64], now: f64) -> [String; 8] {
        let class = job.class.as_deref().unwrap_or("-");
        let class = left(class, class.chars().count().clamp(5, 7));
        // A current problem matters more than the last decision's reason.
        let why = job.trouble.as_deref().or(job.why.as_deref()).unwrap_or_default();
        [
            job.job.clone(),
            standing(job.standing).to_owned(),
            number(job.loss.or(job.last_loss)),
            curve(losses),
            bar(job.cpu, job.limit, self.bar),
            share(job.cpu),
            share(job.limit),
            format!("{class}  {}{why}", ends(job, now)),
        ]
    }
}

/// The job's expected end, and its end under equal sharing.
fn ends(job: &JobView, now: f64) -> String {
    let fair = |at: f64| format!(" (fair {})", span(at - now));
    job.ends_at.map_or_else(String::new, |at| {
        format!("ends in {}{}: ", span(at - now), job.fair_ends_at.map_or_else(String::new, fair))
    })
}

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A curve with one character per value, scaled from the smallest to the largest value.
fn curve(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let level = |value: &f64| {
        let height = if most > least { (value - least) / (most - least) } else { 0.0 };
        let steps = (1_u32..).map(|step| f64::from(step) / 8.0);
        LEVELS.iter().zip(steps).find(|(_, top)| height <= *top).map_or('█', |(level, _)| *level)
    };
    values.iter().map(level).collect()
}

/// A bar of the used share and the limit, as parts of the node.
fn bar(used: Option<f64>, limit: Option<f64>, width: usize) -> String {
    let cells = u32::try_from(width).map_or(1.0, f64::from);
    let middles = (0_u32..).map(|cell| (f64::from(cell) + 0.5) / cells);
    let cell = |middle: f64| {
        if used.is_some_and(|used| middle < used) {
            '█'
        } else if limit.is_some_and(|limit| middle < limit) {
            '░'
        } else {
            ' '
        }
    };
    middles.take(width).map(cell).collect()
}

#[cfg(test)]
mod tests {
    use paceline_api::live::snapshot::Snapshot;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::buffer::Cell;

    use super::*;
    use crate::cli::status::tests::example;

    /// The rows of a terminal of this size, without the spaces at their ends.
    fn drawn(history: &History, trouble: Option<&str>, size: (u16, u16)) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
        terminal.draw(|frame| draw(frame, history, trouble)).unwrap();
        let cells = terminal.backend().buffer().content();
        let rows = cells.chunks(usize::from(size.0.max(1)));
        let rows = rows.map(|row| row.iter().map(Cell::symbol).collect::<String>());
        rows.map(|row| row.trim_end().to_owned()).collect()
    }

    fn text(history: &History, trouble: Option<&str>, size: (u16, u16)) -> String {
        drawn(history, trouble, size).join("\n").trim_end().to_owned() + "\n"
    }

    fn watched() -> History {
        let mut history = History::default();
        for loss in [540.0, 300.0, 200.0, 150.0, 118.2] {
            let mut snapshot = example();
            snapshot.jobs[0].loss = Some(loss);
            history.add(&snapshot);
        }
        history
    }

    #[test]
    fn screen_has_the_expected_text() {
        let expected = "\
paceline 0.1.0, process 812, up 1h 2m 5s; n1: 2 CPUs, 93.0 % in use
flowcon (resolved), quota by engine; guards: none; decision 12, 4s ago
job            standing      loss            use of CPU       use   limit class  why
vae            managed     118.20 █▄▂▁▁      ██████        48.0 %  50.0 % CL     converged
x\\u{1b}]0;own… waiting          -                               -       - -      no answer\\u{1b}[31m
█ used  ░ up to the limit    q quits
";
        assert_eq!(text(&watched(), None, (100, 24)), expected);
        let lost = text(&watched(), Some("no allocator answers"), (100, 24));
        assert!(lost.starts_with("no allocator answers\n"), "{lost}");
    }

    #[test]
    fn job_of_a_planning_policy_shows_its_end() {
        let mut snapshot = example();
        let now = snapshot.now;
        let job = &mut snapshot.jobs[0];
        (job.ends_at, job.fair_ends_at) = (Some(now + 40.0), Some(now + 62.0));
        let mut history = History::default();
        history.add(&snapshot);
        assert!(text(&history, None, (160, 24)).contains("ends in 40s (fair 1m 2s): converged"));
    }

    #[test]
    fn screen_fits_any_terminal_and_names_are_escaped() {
        let mut history = watched();
        let wide = JobView { job: "学".repeat(40), ..JobView::default() };
        history.last.jobs.push(wide);
        for size in [(1, 1), (9, 3), (20, 4), (60, 9), (80, 24), (300, 100)] {
            for row in drawn(&history, Some("no\x1b[31m answer"), size) {
                assert!(!row.chars().any(char::is_control), "{row:?}");
            }
        }
        assert!(text(&history, None, (80, 5)).contains("and 3 more"));
        let rows = drawn(&watched(), None, (100, 24));
        assert!(rows.iter().skip(6).all(String::is_empty), "{rows:?}");
        let narrow = text(&watched(), None, (33, 24));
        assert!(narrow.contains("vae            managed     118.20\n"), "{narrow}");
    }

    #[test]
    fn screen_without_jobs_has_a_remark() {
        let text = text(&History::default(), None, (100, 24));
        assert!(text.contains("no container has opted in\n█ used"), "{text}");
    }

    #[test]
    fn smaller_terminal_is_drawn_in_its_new_size() {
        let history = watched();
        let mut terminal = Terminal::new(TestBackend::new(100, 24)).unwrap();
        for size in [(100, 24), (30, 6), (140, 30)] {
            terminal.backend_mut().resize(size.0, size.1);
            terminal.draw(|frame| draw(frame, &history, None)).unwrap();
            let buffer = terminal.backend().buffer();
            assert_eq!((buffer.area.width, buffer.area.height), size);
            let last = buffer.content().chunks(usize::from(size.0)).nth(5).unwrap();
            let last: String = last.iter().map(Cell::symbol).collect();
            assert!(last.starts_with("█ used  ░ up to the limit"), "{last}");
        }
    }

    #[test]
    fn bars_and_curves_show_their_figures() {
        assert_eq!(bar(Some(0.25), Some(0.5), 8), "██░░    ");
        assert_eq!(bar(None, Some(1.0), 4), "░░░░");
        assert_eq!(bar(Some(1.0), Some(0.5), 4), "████");
        assert_eq!(bar(None, None, 4), "    ");
        assert_eq!(curve(&[8.0, 4.0, 1.0, 0.0]), "█▄▁▁");
        assert_eq!(curve(&[3.0, 3.0]), "▁▁");
        assert_eq!(curve(&[]), "");
    }

    #[test]
    fn history_keeps_the_last_losses_of_running_jobs() {
        let mut history = watched();
        assert_eq!(history.losses("c1", 2), [150.0, 118.2]);
        (0..200).for_each(|_| history.add(&example()));
        assert_eq!(history.losses("c1", 1000).len(), 64);
        history.add(&Snapshot::default());
        assert!(history.losses("c1", 10).is_empty());
    }
}
