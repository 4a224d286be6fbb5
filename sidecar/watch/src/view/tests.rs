use paceline_wire::{Health, Progress, State};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::address::Address;
use crate::client::Failure;
use crate::jobs::tests::one;

/// The rows of a screen, without spaces at their ends.
fn drawn(
    screen: &Screen,
    (jobs, now): &(Jobs, Instant),
    (columns, rows): (u16, u16),
) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| screen.draw(frame, jobs, *now)).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y| -> String { (0..columns).map(|x| buffer[(x, y)].symbol()).collect() };
    (0..rows).map(|y| row(y).trim_end().to_owned()).collect()
}

fn single(change: impl FnOnce(&mut Progress), size: (u16, u16)) -> String {
    drawn(&Screen::new(true, String::new()), &one(change), size).join("\n")
}

fn has_all(screen: &str, parts: &[&str]) {
    for part in parts {
        assert!(screen.contains(part), "{part}:\n{screen}");
    }
}

fn has_dots(screen: &str) -> bool {
    screen.chars().any(|c| ('\u{2801}'..='\u{28ff}').contains(&c))
}

#[test]
fn wide_screen_of_a_job_has_chart_and_all_facts() {
    let screen = single(|_| (), (100, 30));
    has_all(
        &screen,
        &[
            "vae: Training, the loss is sound, last report just now",
            "http://127.0.0.1:7223/\n",
            "30.0 %, 23 min 20 s left █",
            "smoothed 118.6  raw 117.2  validation 121.0  targets",
            "Loss        118.6 smoothed",
            "Batch       p50 30.00 ms, p95 44.00 ms, p99 71.00 ms",
            "Acceptable  120: reached 1 min ago",
            "Objective   110: in 5 min (8 of 10 cases: 3 min 20 s to 8 min 20 s)",
            "CPU         quota 1.5 cores",
            "throttled 12.0 %",
            "Checkpoint  1 saved, last 45 s ago",
            "s time   q quit",
        ],
    );
    assert!(has_dots(&screen), "{screen}");
    let axis =
        screen.lines().find(|line| line.contains("1 200") && !line.contains("step")).unwrap();
    assert!(axis.trim_start_matches(['│', ' ']).starts_with("20 "), "{axis}");
}

#[test]
fn narrow_screen_of_a_job_keeps_state_chart_and_loss() {
    let screen = single(|_| (), (40, 24));
    has_all(&screen, &["vae: Training", "30.0 %", "Loss        118.6 smoothed", "q quit"]);
    assert!(has_dots(&screen), "{screen}");
    // Without room for a chart the facts remain.
    let low = single(|_| (), (40, 8));
    has_all(&low, &["vae: Training", "Progress"]);
    assert!(!has_dots(&low), "{low}");
}

#[test]
fn screen_without_a_total_has_no_bar() {
    let screen = single(
        |progress| {
            progress.total_steps = None;
            progress.signals.progress_ratio = None;
            progress.signals.eta_seconds = None;
        },
        (80, 24),
    );
    has_all(&screen, &["Progress    step 1 200, epoch 3, 2.000 steps/s"]);
    assert!(!screen.contains('█') && !screen.contains("left"), "{screen}");
}

#[test]
fn diverging_job_has_a_line_above_its_chart() {
    let screen = single(|progress| progress.signals.health = Health::Diverging, (80, 30));
    has_all(&screen, &["vae: Training, the loss diverges", "far worse than its best"]);
}

#[test]
fn job_without_a_loss_has_an_empty_chart() {
    let (mut jobs, now) = one(|_| ());
    jobs.take_past(&Address::local(7223), &crate::jobs::tests::example_past("other"));
    let mut fresh = jobs.iter().next().unwrap().progress.clone();
    "02".clone_into(&mut fresh.instance);
    jobs.take(&Address::local(7230), Ok(fresh), now);
    let mut screen = Screen::new(false, String::new());
    screen.press(KeyCode::Down.into(), &jobs);
    screen.press(KeyCode::Enter.into(), &jobs);
    has_all(&drawn(&screen, &(jobs, now), (80, 24)).join("\n"), &["No loss yet."]);
}

#[test]
fn ended_job_stays_on_the_screen() {
    let finished = single(|progress| progress.state = State::Finished, (80, 24));
    has_all(&finished, &["vae: Finished", "not reached"]);
    assert!(!finished.contains("left") && !finished.contains("last report"), "{finished}");
    let (mut jobs, now) = one(|_| ());
    jobs.take(&Address::local(7223), Err(Failure::Absent("refused".to_owned())), now);
    let screen =
        drawn(&Screen::new(true, String::new()), &(jobs.clone(), now), (80, 24)).join("\n");
    has_all(&screen, &["vae: Ended", "did not say how it ended", "118.6 smoothed"]);
    let list = drawn(&Screen::new(false, String::new()), &(jobs, now), (80, 24)).join("\n");
    has_all(&list, &["Paceline: 0 running, 1 ended", "Ended"]);
}

#[test]
fn list_shows_more_columns_on_wider_screens() {
    let rows = |columns| drawn(&Screen::new(false, String::new()), &one(|_| ()), (columns, 24));
    let narrow = rows(40);
    assert_eq!(narrow[0], "Paceline: 1 running");
    assert_eq!(narrow[1], "Job              State         Loss");
    assert_eq!(narrow[2], "vae              Training      118.6");
    let wide = rows(130);
    has_all(&wide[1], &["Done", "Left", "Batch", "Curve", "Throttled", "Address"]);
    has_all(&wide[2], &["30.0 %", "23 min 20 s", "30.00 ms", "12.0 %", "http://127.0.0.1:7223/"]);
    assert!(has_dots(&wide.join("\n")), "{wide:?}");
}

#[test]
fn empty_list_says_what_to_do() {
    let (_, now) = one(|_| ());
    let screen = Screen::new(false, "ports 7223".to_owned());
    let shown = |turns| {
        let mut jobs = Jobs::default();
        jobs.turns = turns;
        drawn(&screen, &(jobs, now), (60, 12)).join("\n")
    };
    has_all(&shown(0), &["Looking for jobs."]);
    has_all(&shown(1), &["Looked at ports 7223.", "paceline-sidecar exec -- python train.py"]);
}

/// Three jobs, named by their instances.
fn three() -> (Jobs, Instant) {
    let (mut jobs, now) = one(|_| ());
    let example = jobs.iter().next().unwrap().progress.clone();
    for (port, name) in [(7230, "mnist"), (7231, "gru")] {
        let mut progress = example.clone();
        progress.started_at += f64::from(port);
        name.clone_into(&mut progress.job);
        name.clone_into(&mut progress.instance);
        jobs.take(&Address::local(port), Ok(progress), now);
    }
    (jobs, now)
}

#[test]
fn keys_choose_open_and_go_back() {
    let (jobs, now) = three();
    let mut screen = Screen::new(false, String::new());
    let mut title_after = |code: KeyCode| {
        assert_eq!(screen.press(code.into(), &jobs), Flow::On);
        drawn(&screen, &(jobs.clone(), now), (80, 24))[0].clone()
    };
    assert!(title_after(KeyCode::Down).starts_with("Paceline: 3 running"));
    assert!(title_after(KeyCode::Enter).starts_with("mnist: Training"));
    assert!(title_after(KeyCode::Down).starts_with("gru: Training"));
    assert!(title_after(KeyCode::Down).starts_with("gru: Training"), "the last one stays");
    assert!(title_after(KeyCode::Home).starts_with("vae: Training"));
    assert!(title_after(KeyCode::Up).starts_with("vae: Training"));
    assert!(title_after(KeyCode::Esc).starts_with("Paceline: 3 running"));
    assert_eq!(screen.press(KeyCode::Esc.into(), &jobs), Flow::Quit);
    assert_eq!(screen.press(KeyCode::Char('q').into(), &jobs), Flow::Quit);
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(screen.press(interrupt, &jobs), Flow::Interrupt);
    let mut single = Screen::new(true, String::new());
    assert_eq!(single.press(KeyCode::Esc.into(), &jobs), Flow::Quit);
}

#[test]
fn chosen_job_stays_chosen_when_another_ends() {
    let (mut jobs, now) = three();
    let mut screen = Screen::new(false, String::new());
    screen.press(KeyCode::Down.into(), &jobs);
    jobs.take(&Address::local(7223), Err(Failure::Absent(String::new())), now);
    screen.press(KeyCode::Enter.into(), &jobs);
    assert!(drawn(&screen, &(jobs, now), (80, 24))[0].starts_with("mnist"));
}

#[test]
fn axis_changes_between_steps_and_time() {
    let of_job = one(|_| ());
    let mut screen = Screen::new(true, String::new());
    let axis = |screen: &Screen| drawn(screen, &of_job, (80, 30)).join("\n");
    assert!(axis(&screen).contains("610 ") && !axis(&screen).contains("5 min 5 s"));
    screen.press(KeyCode::Char('s').into(), &of_job.0);
    has_all(&axis(&screen), &["10 s", "5 min 5 s", "10 min", "s steps"]);
}
