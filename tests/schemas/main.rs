//! The files of `examples/schemas`: JSON Schemas of what is read and written, and the descriptions of both HTTP
//! APIs. They are those of the types, the examples fit them, and running servers answer as they say. `make
//! schemas` writes them again.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod allocator_api;
mod description;
mod examples;
#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../steer/fake_engine.rs"]
mod fake_engine;
mod files;
mod http;
mod job_api;
mod plain;
mod refused;
mod validator;

use std::path::{Path, PathBuf};

use serde_json::Value;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").canonicalize().unwrap()
}

/// A file of `examples/schemas`.
fn schema_file(name: &str) -> PathBuf {
    examples().join("schemas").join(name)
}

fn schema(name: &str) -> Value {
    let path = schema_file(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|_| "{}".to_owned());
    serde_json::from_str(&text).unwrap()
}
