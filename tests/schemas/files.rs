//! The files, made again from the types.

use paceline_allocator::config::Config;
use paceline_api::live::snapshot::Snapshot;
use paceline_node::migration::agent_actions::Done;
use paceline_policy::{Frame, GangFrame, TaskFrame};
use paceline_server::control::Reply;
use paceline_wire::{History, Progress};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, schema_for};
use serde_json::{Map, Value, json};

use crate::plain::{describe_plainly, without_null};
use crate::{schema, schema_file};

/// What is read from a TOML file.
fn toml(schema: Schema) -> Value {
    let mut schema = schema.to_value();
    without_null(&mut schema);
    schema
}

/// What is written.
fn written<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

fn all() -> Vec<(&'static str, Value)> {
    let mut all = vec![
        ("config.json", toml(schema_for!(Config))),
        ("schedule.json", toml(paceline_bench::schedule::schema())),
        ("scenario.json", toml(paceline_sim::scenario::schema())),
        ("job.json", toml(paceline_cluster::gangs::file::schema())),
        ("frame.json", schema_for!(Frame).to_value()),
        ("task-frame.json", schema_for!(TaskFrame).to_value()),
        ("gang-frame.json", schema_for!(GangFrame).to_value()),
        ("progress.json", written::<Progress>()),
        ("history.json", written::<History>()),
        ("job-api.openapi.json", with_schemas("job-api.openapi.json", job_schemas())),
        ("allocator-api.openapi.json", with_schemas("allocator-api.openapi.json", of_allocator())),
    ];
    for (_, schema) in &mut all {
        describe_plainly(schema);
    }
    all
}

/// A generator of schemas for the answers in a description of an API.
fn components() -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.with(|settings| settings.definitions_path = "/components/schemas".into()).into()
}

fn job_schemas() -> Map<String, Value> {
    let mut made = components();
    made.subschema_for::<Progress>();
    made.subschema_for::<History>();
    made.take_definitions(true)
}

fn of_allocator() -> Map<String, Value> {
    let mut made = components();
    made.subschema_for::<Snapshot>();
    made.subschema_for::<Reply>();
    made.subschema_for::<Done>();
    paceline_server::web::add_schemas(&mut made);
    let mut all = made.take_definitions(true);
    // What is read has other required fields than what is written, so it shares no definition.
    let read = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut order = read.into_generator().into_root_schema_for::<paceline_api::live::Command>();
    order.remove("$schema");
    all.insert("Order".to_owned(), order.to_value());
    all
}

/// The description with these schemas. The rest of it, and the schemas of what is read by hand, are written by
/// hand.
fn with_schemas(name: &str, made: Map<String, Value>) -> Value {
    let mut description = schema(name);
    let by_hand = json!(["CheckpointRequest", "Report", "TrainerStatusUpdate"]);
    let schemas = description["components"]["schemas"].as_object_mut().unwrap();
    schemas.retain(|name, _| by_hand.as_array().unwrap().iter().any(|kept| kept == name));
    schemas.extend(made);
    description
}

#[test]
fn every_file_is_that_of_the_types() {
    let mut old = Vec::new();
    for (name, made) in all() {
        let text = serde_json::to_string_pretty(&made).unwrap() + "\n";
        let path = schema_file(name);
        if std::env::var_os("PACELINE_BLESS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        if std::fs::read_to_string(&path).unwrap_or_default() != text {
            old.push(name);
        }
    }
    assert!(old.is_empty(), "{old:?} differ from the types: `make schemas` writes them again");
}

#[test]
fn folder_has_no_other_file() {
    let entries = std::fs::read_dir(schema_file("")).unwrap();
    let mut there: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let mut made: Vec<String> = all().into_iter().map(|(name, _)| name.to_owned()).collect();
    there.sort();
    made.sort();
    assert_eq!(there, made);
}
