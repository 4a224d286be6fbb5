//! JSON Schemas of values that the list of policies checks.

use schemars::{Schema, SchemaGenerator, json_schema};

use crate::policies::ALL;

/// The arm of a bench that knows each job's work.
const ORACLE: &str = "oracle";

fn names() -> Vec<&'static str> {
    ALL.iter().map(|entry| entry.name).collect()
}

/// The name of a policy.
pub fn policy(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": names() })
}

/// A list of names of policies.
pub fn policies(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": policy(generator) })
}

/// The name of a policy, or `oracle`.
pub fn policy_or_oracle(_: &mut SchemaGenerator) -> Schema {
    let mut names = names();
    names.push(ORACLE);
    json_schema!({ "type": "string", "enum": names })
}

/// A list of names, each of a policy or `oracle`.
pub fn policies_or_oracle(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": policy_or_oracle(generator) })
}

/// A list of policies, each in one of its variants: `flowcon`, or `flowcon:published`.
pub fn variants_of_policies(_: &mut SchemaGenerator) -> Schema {
    let variants = ["", ":resolved", ":published"];
    let all =
        names().into_iter().flat_map(|name| variants.map(|variant| format!("{name}{variant}")));
    json_schema!({ "type": "array", "items": { "type": "string", "enum": all.collect::<Vec<_>>() } })
}
