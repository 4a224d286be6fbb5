use proptest::prelude::*;

use super::*;

#[derive(Default)]
struct All(Vec<String>);

impl<'a> Take<'a> for All {
    fn wants(&self, key: &str) -> bool {
        key != "unwanted"
    }

    fn take(&mut self, _: Field, key: &str, value: Value<'a>) {
        self.0.push(format!("{key}={value:?}"));
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

fn all(text: &str) -> Option<(Vec<String>, &str)> {
    let mut dicts = Dicts::default();
    let mut first = All::default();
    let rest = dicts.walk(text, &mut first)?;
    // The second time the dict is a remembered one.
    let mut second = All::default();
    assert_eq!((dicts.walk(text, &mut second), second.0), (Some(rest), first.0.clone()));
    Some((first.0, rest))
}

#[test]
fn json_and_python_dicts_are_walked() {
    for (text, expected) in [
        ("{}", vec![]),
        (r#"{"a":1,"b" : "x\"y"}"#, vec!["a=Number(1.0)", r#"b=Text("x\\\"y")"#]),
        ("{'a': '1.051e+04', 'b': nan}", vec!["a=Number(10510.0)", "b=Number(NaN)"]),
        (r#"{"a": NaN, "b": -Infinity}"#, vec!["a=Number(NaN)", "b=Number(-inf)"]),
        (
            r#"{"a": null, "b": true, "c": None}"#,
            vec!["a=Word(\"null\")", "b=Word(\"true\")", "c=Word(\"None\")"],
        ),
        (
            r#"{"t": {"loss": 0.5, "deep": {"x": 1}}, "l": [1, {"y": "]"}], "z": 2}"#,
            vec![
                "t/loss=Number(0.5)",
                "t/deep=Other",
                r#"l=List("[1, {\"y\": \"]\"}]")"#,
                "z=Number(2.0)",
            ],
        ),
        (
            "{'a': tensor(0.5, device='cuda:0'), 'b': np.float64(1.5), 'c': f(x),}",
            vec!["a=Number(0.5)", "b=Number(1.5)", "c=Other"],
        ),
        (
            r#"{"unwanted": "a,}", "unwanted": [1, "]"], "unwanted":-1e5,"unwanted" : null, "b": 1}"#,
            vec!["b=Number(1.0)"],
        ),
        ("{'unwanted': f(x, '}'), 'unwanted': {'c': {'d': 2}}}", vec!["unwanted/c=Other"]),
    ] {
        let expected = expected.into_iter().map(str::to_owned).collect();
        assert_eq!(all(&format!("{text} and")), Some((expected, " and")), "{text}");
    }
}

#[test]
fn malformed_dict_is_rejected() {
    for text in [
        "",
        "{",
        "{'a'",
        "{'a':",
        "{'a': 1",
        "{'a' 1}",
        "{a: 1}",
        "{'a': }",
        "{'a': [1}",
        "{'a': 1x}",
        "{'a': 1 'b': 2}",
        "{'a': 1,, 'b': 2}",
        "{'a': (}",
        "{\"a\": \"b}",
        "{'unwanted': ",
        "{'unwanted': }",
        "{'unwanted': x",
        "{'unwanted': 1 2}",
        "{'a\\",
    ] {
        assert_eq!(all(text), None, "{text}");
    }
    assert_eq!(all(&format!("{{'a': {}", "[".repeat(100_000))), None);
    assert_eq!(all(&"{'a': ".repeat(100_000)), None);
}

#[test]
fn dicts_of_other_shapes_are_read_and_learnt_in_time() {
    let mut dicts = Dicts::default();
    for (text, expected) in [
        ("{'a': 1, 'b': 2}", vec!["a=Number(1.0)", "b=Number(2.0)"]),
        ("{'a': 3, 'b': nan}", vec!["a=Number(3.0)", "b=Number(NaN)"]),
        ("{'a': 4, 'c': 5}", vec!["a=Number(4.0)", "c=Number(5.0)"]),
        ("{'a': 4}", vec!["a=Number(4.0)"]),
        ("{'a': 4, 'b': 5, 'c': 6}", vec!["a=Number(4.0)", "b=Number(5.0)", "c=Number(6.0)"]),
        ("{'a': 4, 'b': 5, 'c': 6}", vec!["a=Number(4.0)", "b=Number(5.0)", "c=Number(6.0)"]),
        ("{'a': 4, 'b': 5, 'c': 7}", vec!["a=Number(4.0)", "b=Number(5.0)", "c=Number(7.0)"]),
        ("{}", vec![]),
    ] {
        let mut found = All::default();
        assert_eq!(dicts.walk(text, &mut found), Some(""), "{text}");
        assert_eq!(found.0, expected, "{text}");
    }
    assert_eq!(dicts.parts.len(), 3);
}

proptest! {
    #[test]
    fn any_text_is_walked_without_panic(text in r#"\{['"{}\[\]():, a1e.\\é]{0,40}"#) {
        let _: Option<(Vec<String>, &str)> = all(&text);
    }
}
