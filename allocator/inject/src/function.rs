//! A stream may be the input of a kustomize function (KRM): a `ResourceList`.

use crate::cursor::Cursor;
use crate::edit::{self, Edit};
use crate::problem::{Error, Object, Problem};
use crate::transform::{self, Note, Outcome};
use crate::tree::Tree;
use crate::value::{Value, map, text as text_of};
use crate::{Action, Options, PullPolicy};

/// Changes a stream, or the items of a `ResourceList`.
pub(crate) fn run(text: &str, action: Action, options: &Options) -> Result<Outcome, Error> {
    let tree = Tree::read(text)?;
    let Some(root) = list(&tree) else { return transform::run(text, tree, action, options) };
    let configured = configured(&root, action, options).map_err(|problem| {
        let object = Object {
            document: 1,
            item: None,
            kind: "ResourceList".to_owned(),
            name: String::new(),
        };
        Error::Refused(vec![problem.of("read the options of", &object)])
    });
    let (action, options) = configured?;
    let outcome = transform::run(text, tree, action, &options)?;
    Ok(with_results(outcome))
}

/// The answer of a kustomize function that failed: its input, with the errors as `results`. `None`
/// where the input was not for a function.
pub fn failed_function(text: &str, error: &Error) -> Option<String> {
    let tree = Tree::read(text).ok()?;
    let results = match error {
        Error::Refused(refusals) => refusals.iter().map(|refusal| {
            let field = map([("path", text_of(&refusal.field))]);
            let mut result = entry(refusal.to_string(), "error", &refusal.object);
            result.push(("field".to_owned(), field));
            Value::Map(result)
        }),
        Error::Read(_) => return None,
    };
    let edits = result_edits(&list(&tree)?, results.collect()).ok()?;
    edit::apply(text, tree, &edits).ok()
}

/// The `ResourceList`, if the stream is one.
fn list(tree: &Tree) -> Option<Cursor<'_>> {
    let [root] = tree.documents.as_slice() else { return None };
    let root = Cursor::root(tree, *root);
    (root.scalar("kind").ok()? == Some("ResourceList")).then_some(root)
}

/// The action and options, where `functionConfig` sets some: in `spec`, or in `data` of a
/// `ConfigMap`.
fn configured(
    root: &Cursor<'_>,
    action: Action,
    options: &Options,
) -> Result<(Action, Options), Problem> {
    let (mut action, mut options) = (action, options.clone());
    let Some(config) = root.map("functionConfig")? else { return Ok((action, options)) };
    for settings in ["spec", "data"].iter().filter_map(|key| config.map(key).transpose()) {
        for (key, value) in settings?.values() {
            let given = value.tree.scalar(value.id).unwrap_or_default();
            match (key, given) {
                ("image", image) if !image.is_empty() => image.clone_into(&mut options.image),
                ("pullPolicy", given) => options.pull_policy = policy(given, &value)?,
                ("remove", "true") => action = Action::Remove,
                ("remove", "false") => action = Action::Inject,
                ("image", _) => return Err(invalid(&value, "an image")),
                ("remove", _) => return Err(invalid(&value, "true or false")),
                _ => {
                    let cause = "unknown option";
                    return Err(Problem::new(
                        value.field,
                        cause,
                        "use image, pullPolicy or remove",
                    ));
                }
            }
        }
    }
    Ok((action, options))
}

fn policy(given: &str, place: &Cursor<'_>) -> Result<PullPolicy, Problem> {
    let found = PullPolicy::ALL.into_iter().find(|policy| policy.as_str() == given);
    found.ok_or_else(|| invalid(place, "Always, IfNotPresent or Never"))
}

fn invalid(place: &Cursor<'_>, expected: &str) -> Problem {
    Problem::new(place.field.clone(), "the value is invalid", format!("expected {expected}"))
}

/// Adds what was done as `results`. Without an understood layout the items alone are the answer.
fn with_results(outcome: Outcome) -> Outcome {
    let results: Vec<Value> = outcome.notes.iter().map(result).collect();
    let changed = Tree::read_changed(&outcome.text).ok().and_then(|tree| {
        let edits = result_edits(&list(&tree)?, results).ok()?;
        edit::apply(&outcome.text, tree, &edits).ok()
    });
    match changed {
        Some(text) => Outcome { text, notes: outcome.notes },
        None => outcome,
    }
}

fn result_edits(root: &Cursor<'_>, results: Vec<Value>) -> Result<Vec<Edit>, Problem> {
    if results.is_empty() {
        return Ok(vec![]);
    }
    let map = root.own()?;
    let key = "results";
    Ok(match root.get(key)? {
        Some(list) if !list.is_empty() => {
            let list = list.own()?;
            results.into_iter().map(|item| Edit::Last { list, item }).collect()
        }
        Some(_) => vec![],
        None if root.null(key)?.is_some() => {
            vec![Edit::Null { map, key, value: Value::List(results) }]
        }
        None => vec![Edit::Entry { map, key, value: Value::List(results) }],
    })
}

fn result(note: &Note) -> Value {
    let severity = if note.is_change() { "info" } else { "warning" };
    Value::Map(entry(note.to_string(), severity, &note.object))
}

fn entry(message: String, severity: &str, object: &Object) -> Vec<(String, Value)> {
    let reference = map([("kind", text_of(&object.kind)), ("name", text_of(&object.name))]);
    vec![
        ("message".to_owned(), text_of(message)),
        ("severity".to_owned(), text_of(severity)),
        ("resourceRef".to_owned(), reference),
    ]
}
