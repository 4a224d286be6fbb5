//! Random pod templates in random layouts.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use paceline_inject::{Action, Error, Options, transform};
use proptest::prelude::*;

/// A value, with the layout that it is written in.
#[derive(Clone, Debug)]
enum Part {
    Scalar(String),
    Block(String),
    List(Vec<Part>, Layout),
    Map(Vec<(String, Part)>, Layout),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    Flow,
    Block,
    /// A list whose dashes stand below its key.
    Level,
}

fn layout() -> impl Strategy<Value = Layout> {
    prop_oneof![Just(Layout::Flow), Just(Layout::Block), Just(Layout::Level)]
}

/// Scalars that readers of YAML understand differently.
const WORDS: &[&str] = &[
    "on",
    "yes",
    "0644",
    "1e3",
    "~",
    "null",
    "\"\"",
    "'it''s'",
    "\"a\\nb\"",
    "x # comment",
    "a b",
    "träin",
    "-1",
    "!!str 1",
    "2026-11-27",
    "\"#\"",
    "a:b",
    "<<x",
];

/// Headers of scalars of several lines.
const HEADERS: &[&str] = &["|", "|-", "|+", ">", ">+", "|2"];

fn scalar() -> impl Strategy<Value = Part> {
    prop_oneof![
        4 => prop::sample::select(WORDS).prop_map(|word| Part::Scalar(word.to_owned())),
        1 => prop::sample::select(HEADERS).prop_map(|head| Part::Block(head.to_owned())),
    ]
}

fn part() -> impl Strategy<Value = Part> {
    scalar().prop_recursive(4, 24, 4, |inner| {
        let entries =
            prop::collection::vec(("[a-f]{1,3}", inner.clone()), 0..4).prop_map(|mut entries| {
                entries.sort_by(|a, b| a.0.cmp(&b.0));
                entries.dedup_by(|a, b| a.0 == b.0);
                entries
            });
        prop_oneof![
            (prop::collection::vec(inner, 0..4), layout())
                .prop_map(|(items, layout)| Part::List(items, layout)),
            (entries, layout()).prop_map(|(entries, layout)| Part::Map(entries, layout)),
        ]
    })
}

/// Writes a part; lines after the first one are indented.
fn written(part: &Part, indent: usize, flow: bool, out: &mut String) {
    let is_flow = |layout: Layout| flow || layout == Layout::Flow;
    match part {
        Part::Scalar(text) if flow => out.push_str(text.split(" #").next().unwrap_or_default()),
        Part::Scalar(text) => out.push_str(text),
        Part::Block(_) if flow => out.push_str("\"block\""),
        Part::Block(head) => {
            // An explicit indentation is counted from the parent.
            let depth = if head == "|2" { indent + 2 } else { indent + 3 };
            let lead = " ".repeat(depth.saturating_sub(2).max(2));
            out.push_str(head);
            out.extend(["\n", &lead, "first\n\n", &lead, "last\n\n"]);
        }
        Part::List(items, layout) if items.is_empty() || is_flow(*layout) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                written(item, indent, true, out);
            }
            out.push(']');
        }
        Part::List(items, layout) => {
            let dashes = if *layout == Layout::Level { indent.saturating_sub(2) } else { indent };
            for item in items {
                out.extend(["\n", &" ".repeat(dashes), "- "]);
                inline(item, dashes + 2, out);
            }
        }
        Part::Map(entries, layout) if entries.is_empty() || is_flow(*layout) => {
            out.push('{');
            for (at, (key, value)) in entries.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                out.extend([key, ": "]);
                written(value, indent, true, out);
            }
            out.push('}');
        }
        Part::Map(entries, _) => {
            for (key, value) in entries {
                out.extend(["\n", &" ".repeat(indent), key, ": "]);
                written(value, indent + 2, false, out);
            }
        }
    }
}

/// Writes a part after a dash: a mapping begins on the dash's line.
fn inline(part: &Part, indent: usize, out: &mut String) {
    match part {
        Part::Map(entries, Layout::Block | Layout::Level) if !entries.is_empty() => {
            for (at, (key, value)) in entries.iter().enumerate() {
                if at > 0 {
                    out.extend(["\n", &" ".repeat(indent)]);
                }
                out.extend([key, ": "]);
                written(value, indent + 2, false, out);
            }
        }
        // A list below a dash has to be further in.
        Part::List(items, Layout::Level) => {
            written(&Part::List(items.clone(), Layout::Block), indent, false, out);
        }
        Part::Scalar(_) | Part::Block(_) | Part::List(..) | Part::Map(..) => {
            written(part, indent, false, out);
        }
    }
}

fn words(words: &[&str], layout: Layout) -> Part {
    Part::List(words.iter().map(|word| Part::Scalar((*word).to_owned())).collect(), layout)
}

fn map(entries: &[(&str, Part)], layout: Layout) -> Part {
    Part::Map(entries.iter().map(|(key, part)| ((*key).to_owned(), part.clone())).collect(), layout)
}

/// A list that may be there already: absent, null, empty or with something in it.
fn list(item: Part, layout: Layout, kind: u8) -> Option<Part> {
    match kind {
        0 => None,
        1 => Some(Part::Scalar(String::new())),
        2 => Some(Part::Scalar("null".to_owned())),
        3 => Some(Part::List(vec![], layout)),
        _ => Some(Part::List(vec![item.clone(), item], layout)),
    }
}

prop_compose! {
    fn pods()(
        extra in prop::collection::vec(part(), 4),
        layouts in prop::collection::vec(layout(), 8),
        kinds in prop::collection::vec(0_u8..5, 4),
        after in 0..3_usize,
    ) -> Vec<(String, Part)> {
        let (at, kind) = (|i: usize| *layouts.get(i).unwrap(), |i: usize| *kinds.get(i).unwrap());
        let named = |name: &str| map(&[("name", Part::Scalar(name.to_owned()))], at(6));
        let other = |i: usize| extra.get(i).unwrap().clone();
        let mut container = vec![
            ("name", Part::Scalar("job".to_owned())),
            ("xa", other(0)),
            ("command", words(&["python", "\"on\"", "'0644'"], at(0))),
        ];
        container.extend(list(named("data"), at(1), kind(0)).map(|list| ("volumeMounts", list)));
        container.insert(after.min(container.len()), ("xb", other(1)));
        let container = map(&container, at(2));
        let mut spec = vec![("containers", Part::List(vec![container], at(3)))];
        spec.extend(list(named("first"), at(4), kind(1)).map(|list| ("initContainers", list)));
        spec.extend(list(named("data"), at(5), kind(2)).map(|list| ("volumes", list)));
        spec.insert(after.min(spec.len()), ("xc", other(2)));
        let labels = map(&[("paceline.dev/enable", Part::Scalar("\"true\"".to_owned()))], at(6));
        let mut metadata = vec![("name", Part::Scalar("train".to_owned())), ("labels", labels)];
        let note = map(&[("note", Part::Scalar("x".to_owned()))], at(7));
        match kind(3) {
            0 => {}
            1 => metadata.push(("annotations", Part::Scalar(String::new()))),
            2 => metadata.push(("annotations", map(&[], Layout::Flow))),
            _ => metadata.push(("annotations", note)),
        }
        [("metadata", map(&metadata, at(7))), ("spec", map(&spec, at(1))), ("xd", other(3))]
            .map(|(key, part)| (key.to_owned(), part))
            .to_vec()
    }
}

fn manifest(pod: &[(String, Part)], ends: bool, windows: bool) -> String {
    let mut text = "# a comment\napiVersion: v1\nkind: Pod".to_owned();
    written(&Part::Map(pod.to_vec(), Layout::Block), 0, false, &mut text);
    if ends {
        text.push('\n');
    }
    if windows { text.replace('\n', "\r\n") } else { text }
}

fn run(text: &str, action: Action) -> Result<String, Error> {
    transform(text, action, &Options::default()).map(|outcome| outcome.text)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// What is there stays there: taking the sidecar out gives back every byte, in every layout.
    /// That the injected text says what the tree says is checked by the program itself, else it
    /// refuses.
    #[test]
    fn every_layout_is_injected_and_given_back(pod in pods(), ends in any::<bool>(), windows in any::<bool>()) {
        let text = manifest(&pod, ends, windows);
        let injected = run(&text, Action::Inject).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert!(injected.contains("paceline-sidecar") && injected.contains("exec"), "{}", injected);
        let again = run(&injected, Action::Inject).map_err(|error| TestCaseError::fail(format!("{error}\n{injected}")))?;
        prop_assert_eq!(&again, &injected);
        let removed = run(&injected, Action::Remove).map_err(|error| TestCaseError::fail(format!("{error}\n{injected}")))?;
        prop_assert_eq!(&removed, &text, "{}", injected);
    }

    /// No text makes it panic, and a text without a pod that opts in stays as it is.
    #[test]
    fn any_text_is_kept_or_refused(text in "([ -~\n]|[a-c:\\-\\[\\]{},&*#|>\"' \n]){0,80}") {
        if let Ok(same) = run(&text, Action::Inject) {
            prop_assert_eq!(same, text);
        }
    }

    /// Parts of a manifest that are cut off or repeated do no harm.
    #[test]
    fn cut_manifest_is_given_back_or_refused(pod in pods(), from in 0_usize..400, length in 0_usize..40) {
        let mut text = manifest(&pod, true, false);
        let floor = |at: usize| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let (from, to) = (floor(from), floor(from + length));
        text.replace_range(from..to, "");
        if let Ok(injected) = run(&text, Action::Inject) {
            prop_assert_eq!(run(&injected, Action::Remove).ok(), Some(text), "{}", injected);
        }
    }
}
