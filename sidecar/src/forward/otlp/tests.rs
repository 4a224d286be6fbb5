use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread;

use paceline_reporter::Reporter;
use serde_json::Value;

use super::*;

/// Reads a request; returns its body.
fn body_of(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let read = stream.read(&mut piece).ok()?;
        bytes.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
        if body.len() >= length.parse::<usize>().ok()? {
            return Some(body.to_owned());
        }
    }
}

/// A receiver that answers each request, and its requests.
fn receiver() -> (String, mpsc::Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, requests) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let body = body_of(&mut stream).unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
            if sender.send(serde_json::from_str(&body).unwrap()).is_err() {
                return;
            }
        }
    });
    (address, requests)
}

fn reporter() -> Reporter {
    let reporter = Reporter::builder("vae").listen("127.0.0.1:0").hide_address().start().unwrap();
    for loss in [3.0, 2.0, 1.0] {
        reporter.batch().loss(loss);
    }
    reporter
}

fn target(reporter: &Reporter, address: &str) -> Otlp {
    let endpoint = format!("http://{address}");
    let settings = Settings::from_env(|name| match name {
        "OTEL_EXPORTER_OTLP_ENDPOINT" => Some(endpoint.clone().into()),
        "OTEL_EXPORTER_OTLP_PROTOCOL" => Some("http/json".into()),
        "OTEL_METRIC_EXPORT_INTERVAL" => Some("500".into()),
        _ => None,
    });
    let progress = reporter.progress().unwrap();
    Otlp::new(&settings.unwrap().unwrap(), reporter.meter().unwrap(), &progress).unwrap()
}

fn reading(reporter: &Reporter, is_last: bool) -> Item {
    Item::Reading { progress: Arc::new(reporter.progress().unwrap()), is_last }
}

/// The value of a metric without labels.
fn value<'m>(message: &'m Value, name: &str) -> &'m Value {
    let metrics = &message["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
    let metric = metrics.as_array().unwrap().iter().find(|metric| metric["name"] == name).unwrap();
    let data = metric.get("gauge").or(metric.get("sum")).unwrap();
    &data["dataPoints"][0]["asDouble"]
}

#[test]
fn receiver_gets_the_metrics_of_the_job() {
    let (address, requests) = receiver();
    let reporter = reporter();
    let mut target = target(&reporter, &address);
    assert_eq!(target.name(), format!("otlp:{address}"));
    let period = Duration::from_millis(500);
    assert_eq!(target.takes(), Takes::Readings { period, spacing: Duration::ZERO });
    let sent = target.send(&reading(&reporter, false), &Ending::new());
    assert_eq!(sent, Ok(Outcome::Sent));
    let message = requests.recv().unwrap();
    assert_eq!(value(&message, "paceline_steps_total"), 3.0);
    assert_eq!(value(&message, "paceline_loss"), 2.0);
    let attributes = &message["resourceMetrics"][0]["resource"]["attributes"];
    assert_eq!(attributes[0]["value"]["stringValue"], "vae");
}

#[test]
fn last_reading_is_sent_after_the_endpoint_is_closed() {
    let (address, requests) = receiver();
    let reporter = reporter();
    let mut target = target(&reporter, &address);
    reporter.finish();
    let last = reading(&reporter, true);
    drop(reporter);
    let ending = Ending::new();
    ending.begin(Duration::from_mins(1));
    assert_eq!(target.send(&last, &ending), Ok(Outcome::Sent));
    assert_eq!(value(&requests.recv().unwrap(), "paceline_steps_total"), 3.0);
}

#[test]
fn receiver_that_hangs_is_given_up_when_the_job_has_ended() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let reporter = reporter();
    let mut target = target(&reporter, &listener.local_addr().unwrap().to_string());
    let ending = Ending::new();
    ending.begin(Duration::from_mins(1));
    // Far less than the timeouts of the message and of the end: another one is waiting.
    let sent = target.send(&reading(&reporter, false), &ending);
    assert_eq!(sent, Err("timed out".to_owned()));
    ending.begin(Duration::from_millis(50));
    assert_eq!(target.send(&reading(&reporter, true), &ending), Err("timed out".to_owned()));
}

#[test]
fn receiver_that_is_not_there_is_named() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let reporter = reporter();
    let mut target = target(&reporter, &free.to_string());
    let ending = Ending::new();
    ending.begin(Duration::from_mins(1));
    for is_last in [false, true] {
        let error = target.send(&reading(&reporter, is_last), &ending).unwrap_err();
        let expected = format!("cannot connect to {free}: Connection refused");
        assert!(error.contains(&expected), "{error}");
    }
}

#[test]
fn receiver_that_never_answers_is_not_tried_to_the_end_after_the_job() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (count, counted) = mpsc::channel();
    // It closes each connection.
    thread::spawn(move || {
        for stream in listener.incoming() {
            drop(stream);
            if count.send(()).is_err() {
                break;
            }
        }
    });
    let reporter = reporter();
    let mut target = target(&reporter, &address);
    let ending = Ending::new();
    ending.begin(Duration::from_mins(1));
    target.send(&reading(&reporter, true), &ending).unwrap_err();
    // One and another attempt, of all that an export has.
    assert_eq!(counted.try_iter().count(), 2);
}
