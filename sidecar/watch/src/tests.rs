//! Whatever a job answers, all that shows it goes on.

use paceline_wire::{History, Progress};
use proptest::collection::vec;
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::{Value, json};

use crate::address::Address;
use crate::discover::Search;
use crate::jobs::Jobs;
use crate::jobs::tests::{example, example_past};
use crate::view::Screen;
use crate::{clean, clock, listing, snapshot};

/// A value that a hostile job may send in the place of another.
fn any_value() -> impl Strategy<Value = Value> {
    let names = ["running", "failed", "stalled", "diverging", "maximize"];
    prop_oneof![
        any::<f64>().prop_map(|number| json!(number)),
        prop::sample::select(vec![f64::MAX, f64::MIN, 1e308, -0.0, 5e-324, 1e15])
            .prop_map(|x| json!(x)),
        any::<u64>().prop_map(|number| json!(number)),
        any::<i64>().prop_map(|number| json!(number)),
        any::<String>().prop_map(|text| json!(text)),
        prop::sample::select(names.to_vec()).prop_map(|name| json!(name)),
        Just(Value::Null),
        vec(any::<Option<f64>>(), 0..20).prop_map(|list| json!(list)),
        Just(json!({"global": 1, "local": null, "world": 4_294_967_295_u32})),
    ]
}

/// Replaces some of the values of an object, at any depth.
fn spoil(value: &mut Value, changes: &[(usize, Value)]) {
    for (place, new) in changes {
        let mut leaves = Vec::new();
        collect(value, &mut leaves);
        let count = leaves.len();
        if let Some(leaf) = leaves.into_iter().nth(place % count.max(1)) {
            *leaf = new.clone();
        }
    }
}

fn collect<'v>(value: &'v mut Value, leaves: &mut Vec<&'v mut Value>) {
    if let Value::Object(fields) = value {
        fields.values_mut().for_each(|field| collect(field, leaves));
    } else {
        leaves.push(value);
    }
}

fn spoiled<T: serde::Serialize + serde::de::DeserializeOwned>(
    good: &T,
    changes: &[(usize, Value)],
) -> Option<T> {
    let mut value = serde_json::to_value(good).unwrap();
    spoil(&mut value, changes);
    clean::json(&mut value);
    serde_json::from_value(value).ok()
}

fn is_printable(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() && c != '\n')
}

proptest! {
    #[test]
    fn any_answers_are_shown_without_panic(
        // Few changes, so that some are read: one wrong type refuses the whole.
        progress in vec((any::<usize>(), any_value()), 0..4),
        history in vec((any::<usize>(), any_value()), 0..4),
        size in (1..140_u16, 1..50_u16),
        by_time in any::<bool>(),
    ) {
        let progress: Option<Progress> = spoiled(&example(), &progress);
        let history: Option<History> = spoiled(&example_past("01J"), &history);
        let now = clock::now();
        let (mut jobs, address) = (Jobs::default(), Address::local(7223));
        if let Some(progress) = progress {
            jobs.take(&address, Ok(progress), now);
        }
        if let Some(history) = history {
            jobs.take_past(&address, &history);
        }
        for is_single in [true, false] {
            let mut screen = Screen::new(is_single, "somewhere".to_owned());
            if by_time {
                screen.press(crossterm::event::KeyCode::Char('s').into(), &jobs);
            }
            let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
            terminal.draw(|frame| screen.draw(frame, &jobs, now)).unwrap();
            let cells = terminal.backend().buffer().content();
            prop_assert!(cells.iter().all(|cell| is_printable(cell.symbol())));
        }
        prop_assert!(is_printable(&snapshot::list(&jobs, &Search::default())));
        for group in jobs.groups() {
            prop_assert!(is_printable(&snapshot::job(&group, now)));
        }
        let json = listing::json(&jobs).unwrap();
        prop_assert!(serde_json::from_str::<Value>(&json).is_ok());
    }
}
