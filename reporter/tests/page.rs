//! The page of the job, and the past that it draws.

#![cfg(feature = "page")]

mod client;

use std::time::Duration;

use client::{ask, body, wait_until};
use paceline_reporter::Reporter;
use paceline_wire::History;

const LOCAL: &str = "host: localhost\r\n";

fn start() -> Reporter {
    Reporter::builder("vae").listen("127.0.0.1:0").start().expect("a port is free")
}

fn past(reporter: &Reporter, query: &str) -> History {
    let answer = ask(reporter, &format!("GET /v1/history{query}"), LOCAL);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    serde_json::from_str(body(&answer)).expect("it is JSON")
}

#[test]
fn page_is_html_that_may_load_nothing_else() {
    let answer = ask(&start(), "GET /", LOCAL);
    let (head, page) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 ") && page.starts_with("<!DOCTYPE html>"), "{head}");
    for header in ["content-type: text/html; charset=utf-8", "default-src 'none'", "no-store"] {
        assert!(head.contains(header), "{head}");
    }
    let strange = ask(&start(), "GET /", "host: example.com\r\n");
    assert!(strange.starts_with("HTTP/1.1 403 "), "{strange}");
}

#[test]
fn page_may_be_framed_by_pages_of_this_machine_only() {
    let answer = ask(&start(), "GET /", LOCAL);
    let (_, policy) = answer.split_once("frame-ancestors ").expect("the policy names them");
    let (ancestors, _) = policy.split_once(';').expect("more follows");
    for origin in ancestors.split(' ') {
        let (_, host) = origin.split_once("://").expect("each has a scheme");
        assert!(["127.0.0.1:*", "localhost:*"].contains(&host), "{origin}");
    }
}

#[test]
fn history_has_the_reports_of_each_reading() {
    let reporter = start();
    assert_eq!(past(&reporter, "").to, Vec::<f64>::new());
    reporter.record(Some(4.0), Some(Duration::from_millis(20)));
    wait_until("the first report is there", || !past(&reporter, "").to.is_empty());
    reporter.record(Some(2.0), Some(Duration::from_millis(20)));
    reporter.validation(3.0);
    wait_until("the validation is there", || past(&reporter, "").validation.contains(&Some(3.0)));
    let all = past(&reporter, "");
    assert_eq!((all.loss.first(), all.step.last()), (Some(&Some(4.0)), Some(&Some(2))));
    assert_eq!(all.loss_high.first(), Some(&Some(4.0)));
    let durations: Vec<f64> = all.batch_p50.iter().flatten().copied().collect();
    assert!(durations.iter().all(|seconds| (seconds / 0.02 - 1.0).abs() < 0.02), "{durations:?}");
    let later = past(&reporter, &format!("?after={}", all.to[0]));
    assert_eq!((&later.to[..], later.instance), (&all.to[1..], all.instance));
    let unclear = ask(&reporter, "GET /v1/history?after=soon", LOCAL);
    assert!(unclear.starts_with("HTTP/1.1 400 "), "{unclear}");
    assert!(body(&unclear).starts_with("invalid after \"soon\": expected Unix seconds"));
}
