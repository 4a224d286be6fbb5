//! Checks values by schemas.

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::{Value, json};

use crate::plain::each;

/// The place of a schema, which nothing fetches.
const PLACE: &str = "file:///schema.json";

pub(crate) struct Validator {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Validator {
    pub(crate) fn new(schema: Value) -> Self {
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.add_resource(PLACE, schema).unwrap();
        let index = compiler.compile(PLACE, &mut schemas).unwrap();
        Self { schemas, index }
    }

    /// A part of a description of an API, which may refer to its components.
    pub(crate) fn of_part(description: &Value, part: &Value) -> Self {
        let mut schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "allOf": [part],
            "$defs": description["components"]["schemas"],
        });
        each(&mut schema, &mut |object| {
            if let Some(Value::String(target)) = object.get_mut("$ref") {
                *target = target.replace("#/components/schemas/", "#/$defs/");
            }
        });
        Self::new(schema)
    }

    /// What does not fit.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        self.schemas.validate(value, self.index).map_err(|error| format!("{error:#}"))
    }
}

#[test]
fn value_out_of_range_and_unknown_keys_are_refused() {
    let validator = Validator::new(json!({
        "properties": {"a": {"$ref": "#/$defs/A"}}, "additionalProperties": false,
        "$defs": {"A": {"type": "number", "exclusiveMinimum": 0}}
    }));
    assert_eq!(validator.check(&json!({"a": 1})), Ok(()));
    for wrong in [json!({"a": 0}), json!({"a": "1"}), json!({"b": 1})] {
        assert!(validator.check(&wrong).is_err(), "{wrong}");
    }
}
