use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use tracing::{debug, info, warn};

use super::*;

/// A log in memory.
#[derive(Clone, Debug, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Page {
    fn lines(&self) -> Vec<String> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap());
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }
}

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs `act` with a log in the given format.
fn logged(format: Format, act: impl FnOnce(&Page, &Log)) {
    let page = Page::default();
    let writer = page.clone();
    let given = Given { level: None, format: Some(format) };
    let (subscriber, log) = subscriber(given, false, move || writer.clone());
    tracing::subscriber::with_default(subscriber, || act(&page, &log));
}

#[test]
fn level_changes_at_once_and_invalid_filter_changes_nothing() {
    logged(Format::Text, |page, log| {
        debug!("unheard");
        assert!(page.lines().is_empty());
        let answer = log.set_level("debug").unwrap();
        assert!(answer.contains("debug"), "{answer}");
        debug!("heard");
        assert!(matches!(&page.lines()[..], [line] if line.contains("DEBUG heard")));
        for bad in ["", "verbose", "debug,", "paceline_allocator", "=debug", "a b=debug", "x=y=z"] {
            let Err(Refusal::Impossible(why)) = log.set_level(bad) else {
                panic!("{bad} is taken")
            };
            assert!(why.contains("off, error, warn, info, debug or trace"), "{why}");
        }
        debug!("still heard");
        assert_eq!(page.lines().len(), 1);
        log.set_level("error").unwrap();
        warn!("unheard again");
        assert!(page.lines().is_empty());
    });
}

#[test]
fn libraries_log_only_warnings_unless_asked() {
    logged(Format::Text, |page, log| {
        info!(target: "hyper::client", "unheard");
        warn!(target: "hyper::client", "heard");
        assert_eq!(page.lines().len(), 1);
        log.set_level("debug").unwrap();
        debug!(target: "bollard::docker", "what an answer of the engine holds");
        assert!(page.lines().is_empty());
        log.set_level("off, hyper=INFO").unwrap();
        info!(target: "hyper::client", "heard");
        warn!("unheard");
        assert_eq!(page.lines().len(), 1);
    });
}

#[test]
fn json_line_has_time_level_module_and_every_field() {
    logged(Format::Json, |page, _| {
        info!(uid = 7, done = true, "said \"so\"\nin two lines");
        let [line] = &page.lines()[..] else { panic!("not one line") };
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["message"], "said \"so\"\nin two lines");
        assert_eq!(
            (&line["level"], &line["uid"], &line["done"]),
            (&"INFO".into(), &7.into(), &true.into())
        );
        assert_eq!(line["target"], "paceline_allocator::log::tests");
        assert!(line["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{line}");
    });
}

#[test]
fn format_changes_from_one_line_to_the_next() {
    logged(Format::Text, |page, log| {
        info!("for people");
        log.set_filter(&"debug".parse().unwrap()).unwrap();
        log.set_format(Format::Json).unwrap();
        debug!("for programs");
        log.set_filter(&Filter::default()).unwrap();
        log.set_format(Format::Text).unwrap();
        debug!("unheard");
        info!("for people again");
        let lines = page.lines();
        let is_json = |line: &String| serde_json::from_str::<serde_json::Value>(line).is_ok();
        assert_eq!(
            lines.iter().map(is_json).collect::<Vec<_>>(),
            [false, true, false],
            "{lines:?}"
        );
    });
}

#[test]
fn only_a_given_format_is_passed_on() {
    let given = |format| Given { level: None, format };
    assert_eq!(given(Some(Format::Json)).arguments(), Some("--log-format=json".to_owned()));
    assert_eq!(given(None).arguments(), None);
}

#[test]
fn foreign_text_begins_no_line_of_its_own() {
    logged(Format::Text, |page, _| {
        let hostile = "x\n2030-01-01T00:00:00Z  WARN forged\r\x1b[2J";
        warn!(job = hostile, state = ?hostile, "cannot read {hostile}");
        let lines = page.lines();
        let [line] = &lines[..] else { panic!("{lines:?}") };
        assert!(!line.chars().any(char::is_control), "{line:?}");
        assert!(line.contains("cannot read x\\u{a}2030-"), "{line}");
        warn!("{}", "x".repeat(1_000_000));
        assert!(page.lines()[0].len() < 3000);
    });
}

#[test]
fn noisy_job_is_limited_in_the_log_and_counted() {
    for format in [Format::Text, Format::Json] {
        logged(format, |page, _| {
            let name = "noisy";
            for number in 0..2000 {
                warn!(job = name, "trouble {number}");
            }
            info!(job = "quiet", "still heard");
            info!("not about a job");
            let lines = page.lines();
            let of = |word: &str| lines.iter().filter(|line| line.contains(word)).count();
            assert!((200..1000).contains(&of("trouble")), "{}", of("trouble"));
            assert_eq!((of("still heard"), of("not about a job")), (1, 1));
        });
    }
}

#[test]
fn lines_of_our_own_have_the_format_of_the_log() {
    let text = lines::note(Format::Text, "7 lines are lost", 7);
    assert!(text.ends_with("Z  WARN 7 lines are lost\n"), "{text:?}");
    let json = lines::note(Format::Json, "7 lines are lost", 7);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["level"], &json["left_out"]), (&"WARN".into(), &7.into()));
    assert!(json["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{json}");
}
