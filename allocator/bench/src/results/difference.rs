//! The differences of two JSON values, as text.

use std::collections::BTreeSet;

use serde_json::Value;

/// A message with more lines would not help a reader.
const MAX_LINES: usize = 5;

/// The first few differences, each as `path is new, was old`.
pub(super) fn differences(path: &str, old: &Value, new: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(path, old, new, &mut found);
    found.truncate(MAX_LINES);
    found
}

fn collect(path: &str, old: &Value, new: &Value, found: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(before), Value::Object(after)) => {
            let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for name in names {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                let get = |of: &serde_json::Map<String, Value>| of.get(name).cloned();
                let (before, after) = (get(before), get(after));
                collect(&path, &before.unwrap_or_default(), &after.unwrap_or_default(), found);
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            for at in 0..before.len().max(after.len()) {
                let get = |of: &[Value]| of.get(at).cloned().unwrap_or_default();
                let (before, after) = (get(before), get(after));
                let name = [&after, &before].into_iter().find_map(|of| of.get("name")?.as_str());
                let at = name.map_or_else(|| at.to_string(), |name| format!("{name:?}"));
                collect(&format!("{path} {at}"), &before, &after, found);
            }
        }
        _ if old == new => {}
        (Value::Object(_), Value::Null) => found.push(format!("{path} is gone")),
        (Value::Null, Value::Object(_)) => found.push(format!("{path} is new")),
        _ => found.push(format!("{path} is {new}, was {old}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn difference_is_named_by_its_path() {
        let old = json!({"seed": 1, "job": [{"name": "vae", "work": 50.0}, {"name": "gru"}]});
        let new = json!({"seed": 1, "job": [{"name": "vae", "work": 60.0}]});
        assert_eq!(
            differences("", &old, &new),
            ["job \"vae\".work is 60.0, was 50.0", "job \"gru\" is gone"]
        );
        assert!(differences("", &old, &old).is_empty());
    }

    #[test]
    fn only_the_first_few_are_named() {
        let (old, new) = (json!((0..9).collect::<Vec<_>>()), json!(vec![(); 9]));
        assert_eq!(differences("x", &old, &new).len(), MAX_LINES);
    }
}
