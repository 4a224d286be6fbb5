//! What is changed in a schema after it was made of a type.

use serde_json::{Map, Value};

/// Turns links of the documentation into plain words, and joins the lines of a paragraph.
pub(crate) fn describe_plainly(schema: &mut Value) {
    each(schema, &mut |object| {
        if let Some(Value::String(text)) = object.get_mut("description") {
            *text = paragraphs(&without_links(text));
        }
    });
}

/// Removes `null` from all types: TOML has none.
pub(crate) fn without_null(schema: &mut Value) {
    each(schema, &mut |object| {
        match object.get_mut("default") {
            Some(Value::Null) => drop(object.remove("default")),
            Some(Value::Object(keys)) => keys.retain(|_, value| !value.is_null()),
            Some(_) | None => {}
        }
        if let Some(Value::Array(types)) = object.get_mut("type") {
            types.retain(|name| name != "null");
            if let [one] = types.as_slice() {
                let one = one.clone();
                object.insert("type".to_owned(), one);
            }
        }
        let Some(Value::Array(any)) = object.get_mut("anyOf") else { return };
        any.retain(|one| one["type"] != "null");
        if let [Value::Object(one)] = any.as_slice() {
            let one = one.clone();
            object.remove("anyOf");
            for (key, value) in one {
                object.entry(key).or_insert(value);
            }
        }
    });
}

/// Calls `change` for every object of a schema.
pub(crate) fn each(value: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            change(object);
            object.values_mut().for_each(|value| each(value, change));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| each(value, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// `` [`Progress::step`] `` becomes `` `step` ``.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once("[`") {
        let (name, after) = link.split_once("`]").unwrap();
        let name = name.rsplit("::").next().unwrap_or(name);
        plain.extend([before, "`", name, "`"]);
        let target = after.strip_prefix('(').and_then(|target| target.split_once(')'));
        rest = target.map_or(after, |(_, after)| after);
    }
    plain + rest
}

fn paragraphs(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|lines| lines.replace('\n', " "));
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

#[test]
fn descriptions_have_no_links_of_rust_and_one_line_a_paragraph() {
    let text = "As in [`Progress::step`](crate::Progress), or\n[`Eval`].\n\nMore.";
    assert_eq!(paragraphs(&without_links(text)), "As in `step`, or `Eval`.\n\nMore.");
}

#[test]
fn nothing_is_null_in_a_schema_for_toml() {
    let mut schema = serde_json::json!({
        "properties": {
            "a": {"type": ["number", "null"], "default": null, "minimum": 1},
            "b": {"anyOf": [{"$ref": "#/$defs/B"}, {"type": "null"}], "description": "B."}
        }
    });
    without_null(&mut schema);
    let expected = serde_json::json!({
        "properties": {
            "a": {"type": "number", "minimum": 1},
            "b": {"$ref": "#/$defs/B", "description": "B."}
        }
    });
    assert_eq!(schema, expected);
}
