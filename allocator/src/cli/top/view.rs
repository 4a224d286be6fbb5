//! The content of the screen as text, independent of a terminal.

use paceline_api::figures::{moment, number, share, span};
use paceline_api::live::snapshot::{JobView, Snapshot};
use paceline_api::plain::{fit, left, right};

use super::history::History;
use super::screen::{Line, Tone};
use crate::cli::status::{heading, standing};

/// A full screen of the given columns and rows.
pub(super) fn screen(
    history: &History,
    trouble: Option<&str>,
    (columns, rows): (usize, usize),
) -> Vec<Line> {
    let snapshot = &history.last;
    let widths = Widths::for_columns(columns);
    let mut lines: Vec<_> = heading(snapshot).into_iter().map(|text| (Tone::Plain, text)).collect();
    // A problem replaces the first line, which is out of date then.
    if let (Some(trouble), Some(first)) = (trouble, lines.first_mut()) {
        *first = (Tone::Bold, trouble.to_owned());
    }
    lines.push((Tone::Bold, widths.head()));
    let room = rows.saturating_sub(lines.len() + 1);
    let shown = if snapshot.jobs.len() > room { room.saturating_sub(1) } else { room };
    for job in snapshot.jobs.iter().take(shown) {
        lines.push((
            Tone::Plain,
            widths.row(job, &history.losses(&job.container, widths.curve), snapshot.now),
        ));
    }
    match snapshot.jobs.len().saturating_sub(shown) {
        0 if snapshot.jobs.is_empty() => {
            lines.push((Tone::Dim, "no container has opted in".to_owned()));
        }
        0 => {}
        more => lines.push((Tone::Dim, format!("and {more} more, for a taller terminal"))),
    }
    lines.push((Tone::Dim, "█ used  ░ up to the limit    q quits".to_owned()));
    lines.truncate(rows);
    let fitted = |(tone, text): (Tone, String)| Line { tone, text: fit(text.trim_end(), columns) };
    lines.into_iter().map(fitted).collect()
}

/// One line for each job, for files and pipes.
pub(super) fn lines(snapshot: &Snapshot) -> String {
    let line = |job: &JobView| {
        format!(
            "{} {} {} loss {} use {} limit {}\n",
            moment(snapshot.now),
            fit(&job.job, 40),
            standing(job.standing),
            number(job.loss),
            share(job.cpu),
            share(job.limit),
        )
    };
    snapshot.jobs.iter().map(line).collect()
}

/// The widths of the columns that grow with the terminal.
#[derive(Clone, Copy, Debug)]
struct Widths {
    name: usize,
    curve: usize,
    bar: usize,
}

impl Widths {
    fn for_columns(columns: usize) -> Self {
        if columns >= 110 {
            Self { name: 20, curve: 16, bar: 24 }
        } else {
            Self { name: 14, curve: 10, bar: 12 }
        }
    }

    fn head(self) -> String {
        self.cells(["job", "standing", "loss", "", "use of CPU", "use", "limit", "class  why"])
    }

    fn row(self, job: &JobView, losses: &[f64], now: f64) -> String {
        let class = job.class.as_deref().unwrap_or("-");
        let class = left(class, class.chars().count().clamp(5, 7));
        // A current problem matters more than the last decision's reason.
        let why = job.trouble.as_deref().or(job.why.as_deref()).unwrap_or_default();
        self.cells([
            &job.job,
            standing(job.standing),
            &number(job.loss),
            &curve(losses),
            &bar(job.cpu, job.limit, self.bar),
            &share(job.cpu),
            &share(job.limit),
            &format!("{class}  {}{why}", ends(job, now)),
        ])
    }

    fn cells(self, [job, standing, loss, curve, bar, cpu, limit, rest]: [&str; 8]) -> String {
        [
            &left(job, self.name),
            &left(standing, 8),
            &right(loss, 9),
            &left(curve, self.curve),
            &left(bar, self.bar),
            &right(cpu, 7),
            &right(limit, 7),
            rest,
        ]
        .join(" ")
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
    use super::*;
    use crate::cli::status::tests::example;

    fn text(history: &History, trouble: Option<&str>, size: (usize, usize)) -> String {
        let lines = screen(history, trouble, size).into_iter();
        lines.map(|line| line.text + "\n").collect()
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
    fn lines_fit_any_terminal_and_names_are_escaped() {
        let history = watched();
        for size in [(0, 0), (1, 1), (20, 4), (80, 24), (300, 100)] {
            let lines = screen(&history, None, size);
            assert!(lines.len() <= size.1);
            for Line { text, .. } in lines {
                assert!(unicode_width::UnicodeWidthStr::width(&*text) <= size.0.max(1), "{text}");
                assert!(!text.chars().any(char::is_control), "{text:?}");
            }
        }
        assert!(text(&history, None, (80, 5)).contains("and 2 more"));
        assert!(!lines(&history.last).trim_end().chars().any(|c| c.is_control() && c != '\n'));
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
