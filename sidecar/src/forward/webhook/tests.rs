use std::sync::Arc;

use super::*;
use crate::forward::testing::{Answer, OK, Receiving};
use crate::forward::{Event, Forwarding, Kind, tests};

fn target(server: &Receiving, place: &str) -> Webhook {
    let url = format!("http://{place}{}/hook/s3cr3t?key=t0ken", server.address);
    Webhook::new(&url, EventSet::all()).unwrap()
}

fn send(target: &mut Webhook, ending: &Ending) -> Result<Outcome, String> {
    let progress = Arc::new(tests::progress(1.0));
    let event = Event { kind: Kind::Finished, progress };
    target.send(&Item::Event(Arc::new(event)), ending)
}

#[test]
fn event_is_posted_with_path_query_and_password() {
    let server = Receiving::plain(&[OK]);
    let mut target = target(&server, "me:pass%20word@");
    assert_eq!(send(&mut target, &Ending::new()), Ok(Outcome::Sent));
    let got = server.next();
    assert_eq!(got.line, "POST /hook/s3cr3t?key=t0ken HTTP/1.1");
    // "me:pass word"
    assert!(got.headers.contains("authorization: Basic bWU6cGFzcyB3b3Jk\n"), "{}", got.headers);
    assert!(got.headers.contains(&format!("host: {}\n", server.address)), "{}", got.headers);
    let body: serde_json::Value = serde_json::from_str(&got.body).unwrap();
    assert_eq!((&body["event"], &body["job"]), (&"finished".into(), &"vae".into()));
}

#[test]
fn secrets_of_the_url_are_never_shown() {
    let server = Receiving::plain(&[Answer::Status("404 Not Found", "")]);
    let mut target = target(&server, "me:word@");
    let error = send(&mut target, &Ending::new()).unwrap_err();
    let shown = format!("{} {target:?} {error}", target.name());
    for secret in ["s3cr3t", "t0ken", "word"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    assert!(shown.contains(&format!("webhook:http://{}", server.address)), "{shown}");
    let error = Webhook::new("gopher://me:word@host/s3cr3t", EventSet::all()).unwrap_err();
    assert!(error.starts_with("expected a URL") && !error.contains("s3cr3t"), "{error}");
}

#[test]
fn temporary_failures_are_tried_again_and_others_are_not() {
    let busy = Answer::Status("503 Service Unavailable", "");
    let server = Receiving::plain(&[Answer::Close, busy, OK]);
    let mut one = target(&server, "");
    assert_eq!(send(&mut one, &Ending::new()), Ok(Outcome::Sent));
    let at: Vec<_> = (0..3).map(|_| server.next().at).collect();
    assert!(at[1] >= at[0] + FIRST_BACKOFF && at[2] >= at[1] + FIRST_BACKOFF * 2, "{at:?}");
    for refusal in ["400 Bad Request", "302 Found"] {
        let server = Receiving::plain(&[Answer::Status(refusal, ""), OK]);
        let error = send(&mut target(&server, ""), &Ending::new()).unwrap_err();
        assert!(error.contains(refusal) && error.contains("tried once"), "{error}");
        server.next();
        assert!(server.requests.try_recv().is_err());
    }
}

#[test]
fn endless_answer_is_cut_off() {
    let server = Receiving::plain(&[Answer::Endless]);
    let ending = Ending::new();
    // So that it is not tried again.
    ending.begin(Duration::ZERO);
    let mut one = target(&server, "");
    // Without time, nothing is sent; with the usual time, the answer is read in part.
    assert!(send(&mut one, &ending).unwrap_err().contains("no answer within 0 s"));
    let posted = one.client.post("{}".to_owned(), None, &Trust::Machine, Duration::from_mins(1));
    let error = posted.unwrap_err().to_string();
    assert!(error.starts_with("the answer is 500") && error.len() < 300, "{error}");
}

#[test]
fn receiver_that_hangs_ends_with_the_flush() {
    let server = Receiving::plain(&[Answer::Never]);
    let forwarding = Forwarding::start(vec![Box::new(target(&server, ""))]).unwrap();
    let mut progress = tests::progress(1.0);
    progress.state = paceline_reporter::wire::State::Failed;
    forwarding.publish(&progress, true);
    server.next();
    // It returns; the receiver never answers.
    forwarding.close(Duration::from_secs(1));
    assert_eq!(forwarding.describe()[0].sent, 0);
}

#[test]
fn urls_are_checked() {
    for url in ["", "host", "ftp://host/", "http://", "/path", "http://ho st/"] {
        assert!(Url::parse(url).is_err(), "{url}");
    }
    for (url, shown) in [
        ("https://user:word@example.com/x?y", "https://example.com"),
        ("http://[::1]:8080", "http://[::1]:8080"),
        (" http://127.0.0.1/x#part\n", "http://127.0.0.1"),
    ] {
        assert_eq!(Url::parse(url).unwrap().to_string(), shown);
    }
}
