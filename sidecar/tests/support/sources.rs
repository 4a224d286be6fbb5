//! Reads fixtures with the library.

use std::path::Path;
use std::time::Duration;

use paceline_grammar::{Detector, Patterns, Reader};
use paceline_lines::observation::Observation;
use paceline_sidecar::csv;
use paceline_sidecar::push::trainer_status;
use paceline_sidecar::tfevents::folder::Folder;
use serde::Deserialize;

use super::{Fixture, bytes, text};

/// The bytes that arrived at one time.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) at: f64,
    pub(crate) bytes: Vec<u8>,
}

/// A reader as the command line creates it for a job without patterns.
pub(crate) fn reader() -> Reader {
    Reader::new(Detector::new(Patterns::default()))
}

/// The observations of a log that arrives in pieces of `size` bytes.
pub(crate) fn log(path: &Path, size: usize) -> Vec<Observation> {
    let mut found = Vec::new();
    let mut reader = reader();
    for piece in bytes(path).chunks(size) {
        reader.feed(piece, &mut |one| found.push(one.clone()));
    }
    reader.finish(&mut |one| found.push(one.clone()));
    found
}

/// The observations of a log with its original pieces, flushed after each one, as if a live source
/// had been quiet then.
pub(crate) fn log_as_it_came(fixture: &Fixture) -> Vec<Observation> {
    let mut found = Vec::new();
    let mut reader = reader();
    for arrival in arrivals(fixture) {
        reader.feed(&arrival.bytes, &mut |one| found.push(one.clone()));
        reader.flush(&mut |one| found.push(one.clone()));
    }
    reader.finish(&mut |one| found.push(one.clone()));
    found
}

/// The pieces of a log with their arrival times.
pub(crate) fn arrivals(fixture: &Fixture) -> Vec<Arrival> {
    let log = bytes(&fixture.source());
    let mut from = 0;
    let rows = text(&fixture.folder.join("arrivals.csv"));
    let mut arrival = |row: &str| {
        let (at, to) = row.split_once(',').unwrap();
        let to = to.parse().unwrap();
        let bytes = log.get(from..to).unwrap().to_vec();
        from = to;
        Arrival { at: at.parse().unwrap(), bytes }
    };
    let all: Vec<_> = rows.lines().skip(1).map(&mut arrival).collect();
    assert_eq!(from, log.len(), "the times are of the whole log");
    all
}

/// The observations of a CSV file.
pub(crate) fn rows(path: &Path) -> Vec<Observation> {
    let mut found = Vec::new();
    let mut reader = csv::Reader::new(path);
    while reader.poll(&mut |one| found.push(one)).unwrap().more {}
    found
}

/// The observations of event files. Files are read one after the other, so the observations are
/// sorted by the times of their events.
pub(crate) fn events(path: &Path) -> Vec<Observation> {
    let mut found = Vec::new();
    let mut folder = Folder::new(path, 0);
    while folder.poll(Duration::ZERO, &mut |one| found.push(one.observation)).more {}
    found.sort_by(|a, b| a.at.unwrap().total_cmp(&b.at.unwrap()));
    found
}

/// The observations of posted bodies.
pub(crate) fn requests(path: &Path) -> Vec<Observation> {
    text(path).lines().map(request).collect()
}

fn request(line: &str) -> Observation {
    #[derive(Deserialize)]
    struct Request {
        body: String,
    }
    let request: Request = serde_json::from_str(line).unwrap();
    trainer_status::parse(request.body.as_bytes()).unwrap()
}
