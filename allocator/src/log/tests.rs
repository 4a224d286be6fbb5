use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use tracing::{debug, info, warn};

use super::*;

/// A log that can be read.
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

/// What is logged in a form while `act` runs.
fn logged(format: Format, act: impl FnOnce(&Page, &Log)) {
    let page = Page::default();
    let writer = page.clone();
    let given = Given { level: None, format: Some(format) };
    let (subscriber, log) = subscriber(given, false, move || writer.clone());
    tracing::subscriber::with_default(subscriber, || act(&page, &log));
}

#[test]
fn the_level_changes_at_once_and_a_bad_filter_leaves_it_as_it_is() {
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
fn others_modules_say_only_what_is_wrong_unless_asked() {
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
fn a_line_of_json_has_time_level_module_and_every_field() {
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
fn the_form_changes_from_one_line_to_the_next() {
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
fn the_form_that_was_given_is_handed_on_and_no_other() {
    let given = |format| Given { level: None, format };
    assert_eq!(given(Some(Format::Json)).words(), Some("--log-format=json".to_owned()));
    assert_eq!(given(None).words(), None);
}
