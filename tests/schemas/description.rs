//! A description of an API, held against answers.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::http::{Answer, Place, Request};
use crate::schema;
use crate::validator::Validator;

/// A documented answer: method, path and status.
type Documented = (String, String, u16);

pub(crate) struct Description {
    whole: Value,
    /// The answers that were seen.
    seen: BTreeSet<Documented>,
}

impl Description {
    pub(crate) fn read(name: &str) -> Self {
        Self { whole: schema(name), seen: BTreeSet::new() }
    }

    /// The methods and paths.
    pub(crate) fn operations(&self) -> BTreeSet<(String, String)> {
        let paths = self.whole["paths"].as_object().unwrap();
        let methods = paths.iter().flat_map(|(path, methods)| {
            let names = methods.as_object().unwrap().keys();
            names.map(move |method| (method.to_uppercase(), path.clone()))
        });
        methods.collect()
    }

    fn responses(&self, method: &str, path: &str) -> &Value {
        &self.whole["paths"][path][method.to_lowercase()]["responses"]
    }

    fn documented(&self) -> BTreeSet<Documented> {
        let operations = self.operations().into_iter();
        let all = operations.flat_map(|(method, path)| {
            let responses = self.responses(&method, &path).as_object().unwrap().keys();
            let one = |status: &String| (method.clone(), path.clone(), status.parse().unwrap());
            responses.map(one).collect::<Vec<_>>()
        });
        all.collect()
    }

    /// The parts of a reference within the document.
    fn resolve<'a>(&'a self, value: &'a Value) -> &'a Value {
        let target = value["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
        target.map_or(value, |pointer| self.whole.pointer(pointer).unwrap())
    }

    /// The path of the document that a request asks for.
    fn path_of(&self, method: &str, asked: &str) -> String {
        let asked = asked.split('?').next().unwrap();
        let fits = |pattern: &str| match pattern.split_once('{') {
            None => pattern == asked,
            Some((before, rest)) => {
                let after = rest.split_once('}').unwrap().1;
                let inside = asked.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
                inside.is_some_and(|inside| !inside.is_empty())
            }
        };
        let mut paths =
            self.operations().into_iter().filter(|(of, path)| of == method && fits(path));
        let found = paths.next().unwrap_or_else(|| panic!("{method} {asked} is not documented"));
        assert!(paths.next().is_none(), "{method} {asked} has one description");
        found.1
    }

    /// Sends a request, and checks that its answer is the documented one with this status.
    pub(crate) async fn check(&mut self, place: &Place, request: &Request, status: u16) -> Answer {
        let answer = request.send(place).await;
        assert_eq!(answer.status, status, "{request:?}: {answer:?}");
        let path = self.path_of(&request.method, &request.path);
        let documented = &self.responses(&request.method, &path)[status.to_string()];
        assert!(documented.is_object(), "{} {path} does not document {status}", request.method);
        let documented = self.resolve(documented);
        match documented.get("content") {
            None => assert_eq!(answer.body, "", "{request:?}"),
            Some(content) => self.check_body(&answer, content),
        }
        self.seen.insert((request.method.clone(), path, status));
        answer
    }

    fn check_body(&self, answer: &Answer, content: &Value) {
        let content_type = answer.content_type.as_deref().unwrap();
        let content = &content[content_type];
        assert!(content.is_object(), "{content_type} is not documented: {answer:?}");
        let body = if content_type == "application/json" {
            serde_json::from_str(&answer.body).unwrap()
        } else {
            Value::from(answer.body.as_str())
        };
        let checked = Validator::of_part(&self.whole, &content["schema"]).check(&body);
        checked.unwrap_or_else(|why| panic!("{why}: {body}"));
    }

    /// Checks the JSON of an event by a component's schema.
    pub(crate) fn check_event(&self, answer: &Answer, component: &str) {
        let data = answer.body.trim_end().strip_prefix("data: ").unwrap();
        let part = serde_json::json!({"$ref": format!("#/components/schemas/{component}")});
        let value = serde_json::from_str(data).unwrap();
        Validator::of_part(&self.whole, &part).check(&value).unwrap();
    }

    /// Whether the body of a request fits its description.
    pub(crate) fn allows(&self, path: &str, body: &str) -> bool {
        let content = &self.whole["paths"][path]["post"]["requestBody"]["content"];
        let schema = &content["application/json"]["schema"];
        let validator = Validator::of_part(&self.whole, schema);
        serde_json::from_str(body).is_ok_and(|body| validator.check(&body).is_ok())
    }

    /// The examples of a request's body.
    pub(crate) fn example(&self, path: &str) -> String {
        let content = &self.whole["paths"][path]["post"]["requestBody"]["content"];
        content["application/json"]["example"].to_string()
    }

    /// Checks that every documented answer was seen, apart from these.
    pub(crate) fn is_covered_except(&self, unseen: &[(&str, &str, u16)]) {
        let unseen: BTreeSet<Documented> = unseen
            .iter()
            .map(|(method, path, status)| ((*method).to_owned(), (*path).to_owned(), *status))
            .collect();
        let missing: BTreeSet<_> = self.documented().difference(&self.seen).cloned().collect();
        assert_eq!(missing, unseen, "documented answers that no server gave");
    }
}
