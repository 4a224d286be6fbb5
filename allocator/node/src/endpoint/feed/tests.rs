use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::endpoint::tests::{ok, progress, reach};

/// Only a test that hangs takes this long.
const HANG_TIMEOUT: Duration = Duration::from_mins(1);

fn changed(change: impl Fn(&mut Progress)) -> Progress {
    let mut progress: Progress = serde_json::from_str(&progress(1)).unwrap();
    change(&mut progress);
    progress
}

fn follow(address: SocketAddr, overrides: TargetOverrides) -> (Feed, Arc<Notify>) {
    let wake = Arc::new(Notify::new());
    let routes = vec![Route::Address(address)];
    (Feed::follow(reach(), routes, overrides, Arc::clone(&wake)), wake)
}

/// The next request: its path, and the connection for the answer.
async fn asked(listener: &TcpListener) -> (String, TcpStream) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut head = [0; 1024];
    let read = stream.read(&mut head).await.unwrap();
    let head = String::from_utf8_lossy(&head[..read]).into_owned();
    (head.split(' ').nth(1).unwrap().to_owned(), stream)
}

async fn latest(feed: &Feed, holds: impl Fn(&LatestReport) -> bool) -> LatestReport {
    let mut latest = feed.latest.clone();
    let waited = timeout(HANG_TIMEOUT, latest.wait_for(|latest| holds(latest))).await;
    waited.unwrap().unwrap().clone()
}

const EVENTS: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

fn event(progress: &Progress) -> Vec<u8> {
    format!("data: {}\n\n", serde_json::to_string(progress).unwrap()).into_bytes()
}

#[tokio::test]
async fn events_are_followed_and_urgent_news_wakes_at_once() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let (feed, wake) = follow(listener.local_addr().unwrap(), TargetOverrides::default());
    let (page, mut stream) = asked(&listener).await;
    assert_eq!(page, "/v1/progress");
    stream.write_all(&ok(&progress(1))).await.unwrap();
    let (page, mut stream) = asked(&listener).await;
    assert_eq!(page, "/v1/events");
    wake.notified().await;
    stream.write_all(EVENTS).await.unwrap();
    stream.write_all(&event(&changed(|p| p.eval.count = 10))).await.unwrap();
    let after =
        latest(&feed, |latest| latest.progress.as_ref().is_some_and(|p| p.eval.count == 10));
    assert_eq!(after.await.urgent, 1, "a loss alone can wait");
    stream.write_all(&event(&changed(|p| p.reached.acceptable_at = Some(2.0)))).await.unwrap();
    timeout(HANG_TIMEOUT, wake.notified()).await.unwrap();
    assert_eq!((feed.latest().urgent, feed.latest().reached), (1, 1));
}

#[tokio::test]
async fn job_with_events_is_asked_on_request() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let (feed, _) = follow(listener.local_addr().unwrap(), TargetOverrides::default());
    let (_, mut stream) = asked(&listener).await;
    stream.write_all(&ok(&progress(1))).await.unwrap();
    let (_, mut events) = asked(&listener).await;
    events.write_all(EVENTS).await.unwrap();
    assert!(feed.has_answered(), "no report was requested yet");
    feed.ask();
    let (page, mut stream) = asked(&listener).await;
    assert!(page == "/v1/progress" && !feed.has_answered());
    let json = serde_json::to_string(&changed(|p| p.eval.count = 10)).unwrap();
    stream.write_all(&ok(&json)).await.unwrap();
    let answered = latest(&feed, |latest| latest.answered == 1).await;
    assert!(feed.has_answered() && answered.progress.unwrap().eval.count == 10);
}

#[tokio::test]
async fn job_is_asked_at_once_when_its_targets_change() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let (feed, wake) = follow(listener.local_addr().unwrap(), TargetOverrides::default());
    let (_, mut stream) = asked(&listener).await;
    stream.write_all(&ok(&progress(1))).await.unwrap();
    let (_, mut events) = asked(&listener).await;
    events.write_all(EVENTS).await.unwrap();
    wake.notified().await;
    // However often: this is not the job waking the allocator.
    for count in 10_u32..30 {
        let targets = Targets { acceptable: Some(f64::from(count)), ..Targets::default() };
        feed.set_overrides(TargetOverrides { targets, direction: None });
        let (page, mut stream) = asked(&listener).await;
        assert_eq!(page, "/v1/progress");
        let json = serde_json::to_string(&changed(|p| p.eval.count = count.into())).unwrap();
        stream.write_all(&ok(&json)).await.unwrap();
        timeout(HANG_TIMEOUT, wake.notified()).await.unwrap();
        assert_eq!(feed.latest().progress.unwrap().eval.count, u64::from(count));
    }
}

#[tokio::test]
async fn job_without_events_is_asked_again_and_again() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let (feed, _) = follow(listener.local_addr().unwrap(), TargetOverrides::default());
    let serve = async {
        for count in 1..3 {
            loop {
                let (page, mut stream) = asked(&listener).await;
                if page == "/v1/progress" {
                    let json = serde_json::to_string(&changed(|p| p.eval.count = count)).unwrap();
                    stream.write_all(&ok(&json)).await.unwrap();
                    break;
                }
                let missing = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
                stream.write_all(missing).await.unwrap();
            }
        }
    };
    serve.await;
    let twice = latest(&feed, |latest| latest.progress.as_ref().is_some_and(|p| p.eval.count == 2));
    assert_eq!(twice.await.trouble, None);
}

#[tokio::test]
async fn endless_events_are_dropped_and_the_last_report_kept() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let (feed, _) = follow(listener.local_addr().unwrap(), TargetOverrides::default());
    let (_, mut stream) = asked(&listener).await;
    stream.write_all(&ok(&progress(1))).await.unwrap();
    let (_, mut stream) = asked(&listener).await;
    stream.write_all(EVENTS).await.unwrap();
    let endless = vec![b'x'; 1024 * 1024];
    let mut sent = 0;
    while sent < 64 * endless.len() && stream.write_all(&endless).await.is_ok() {
        sent += endless.len();
    }
    assert!(sent < 64 * endless.len(), "{sent} bytes of it were read");
    assert_eq!(feed.latest().progress.unwrap().eval.count, 9);
}

#[tokio::test]
async fn job_that_does_not_answer_has_trouble() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let (feed, _) = follow(address, TargetOverrides::default());
    let trouble = latest(&feed, |latest| latest.trouble.is_some()).await.trouble.unwrap();
    assert!(trouble.may_pass && trouble.text.contains("no answer from"), "{trouble:?}");
}

#[test]
fn only_news_on_which_a_policy_may_act_is_urgent() {
    let before = changed(|_| {});
    let urgent = |change: fn(&mut Progress)| is_urgent(&before, &changed(change));
    let reached = |change: fn(&mut Progress)| {
        has_reached(&before, &changed(change), TargetOverrides::default())
    };
    assert!(reached(|p| p.reached.objective_at = Some(1.0)));
    assert!(!urgent(|p| p.reached.objective_at = Some(1.0)), "not to every policy");
    assert!(urgent(|p| p.state = State::Finished));
    assert!(urgent(|p| p.instance = "another".to_owned()));
    assert!(urgent(|p| p.checkpoint.saved = 1));
    assert!(!urgent(|p| p.state = State::Starting));
    let silent = changed(|p| p.state = State::Starting);
    assert!(is_urgent(&silent, &before), "it has begun to report");
    assert!(!urgent(|p| p.eval.count = 10));
    assert!(!reached(|p| p.eval.value = Some(0.1)), "the job itself reports reached targets");
}

#[test]
fn target_that_the_job_does_not_know_is_watched() {
    let overrides = |direction| TargetOverrides {
        targets: Targets { acceptable: Some(1.0), ..Targets::default() },
        direction,
    };
    let (above, below) =
        (changed(|p| p.eval.value = Some(1.5)), changed(|p| p.eval.value = Some(0.5)));
    assert!(has_reached(&above, &below, overrides(None)));
    assert!(!has_reached(&below, &above, overrides(None)));
    assert!(!has_reached(&below, &below, overrides(None)), "once is enough");
    assert!(has_reached(&below, &above, overrides(Some(Direction::Maximize))));
}
