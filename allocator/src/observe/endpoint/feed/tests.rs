use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::observe::endpoint::tests::{ok, progress};

/// Only what hangs takes so long.
const PATIENCE: Duration = Duration::from_mins(1);

fn of(change: impl Fn(&mut Progress)) -> Progress {
    let mut progress: Progress = serde_json::from_str(&progress(1)).unwrap();
    change(&mut progress);
    progress
}

fn follow(address: SocketAddr, owned: Owned) -> (Feed, Arc<Notify>) {
    let nudge = Arc::new(Notify::new());
    let (proc, ways) = (Path::new("/proc").to_owned(), vec![Way::Address(address)]);
    (Feed::follow(proc, ways, owned, Arc::clone(&nudge)), nudge)
}

/// The next request: its page, and where to answer.
async fn asked(listener: &TcpListener) -> (String, TcpStream) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut head = [0; 1024];
    let read = stream.read(&mut head).await.unwrap();
    let head = String::from_utf8_lossy(&head[..read]).into_owned();
    (head.split(' ').nth(1).unwrap().to_owned(), stream)
}

async fn heard(feed: &Feed, holds: impl Fn(&Heard) -> bool) -> Heard {
    let mut heard = feed.heard.clone();
    let waited = timeout(PATIENCE, heard.wait_for(|heard| holds(heard))).await;
    waited.unwrap().unwrap().clone()
}

const EVENTS: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

fn event(progress: &Progress) -> Vec<u8> {
    format!("data: {}\n\n", serde_json::to_string(progress).unwrap()).into_bytes()
}

#[tokio::test]
async fn events_are_followed_and_what_cannot_wait_wakes_the_allocator_at_once() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let (feed, nudge) = follow(listener.local_addr().unwrap(), Owned::default());
    let (page, mut stream) = asked(&listener).await;
    assert_eq!(page, "/v1/progress");
    stream.write_all(&ok(&progress(1))).await.unwrap();
    let (page, mut stream) = asked(&listener).await;
    assert_eq!(page, "/v1/events");
    nudge.notified().await;
    stream.write_all(EVENTS).await.unwrap();
    stream.write_all(&event(&of(|p| p.eval.count = 10))).await.unwrap();
    let after = heard(&feed, |heard| heard.progress.as_ref().is_some_and(|p| p.eval.count == 10));
    assert_eq!(after.await.urgent, 1, "a loss alone can wait");
    stream.write_all(&event(&of(|p| p.reached.acceptable_at = Some(2.0)))).await.unwrap();
    timeout(PATIENCE, nudge.notified()).await.unwrap();
    assert_eq!((feed.heard().urgent, feed.heard().reached), (1, 1));
}

#[tokio::test]
async fn a_job_is_asked_when_that_is_wanted_though_it_has_events() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let (feed, _) = follow(listener.local_addr().unwrap(), Owned::default());
    let (_, mut stream) = asked(&listener).await;
    stream.write_all(&ok(&progress(1))).await.unwrap();
    let (_, mut events) = asked(&listener).await;
    events.write_all(EVENTS).await.unwrap();
    assert!(feed.has_answered(), "it was not to be asked yet");
    feed.ask();
    let (page, mut stream) = asked(&listener).await;
    assert!(page == "/v1/progress" && !feed.has_answered());
    let json = serde_json::to_string(&of(|p| p.eval.count = 10)).unwrap();
    stream.write_all(&ok(&json)).await.unwrap();
    let answered = heard(&feed, |heard| heard.answered == 1).await;
    assert!(feed.has_answered() && answered.progress.unwrap().eval.count == 10);
}

#[tokio::test]
async fn a_job_that_is_to_reach_something_else_is_asked_at_once_where_it_stands() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let (feed, nudge) = follow(listener.local_addr().unwrap(), Owned::default());
    let (_, mut stream) = asked(&listener).await;
    stream.write_all(&ok(&progress(1))).await.unwrap();
    let (_, mut events) = asked(&listener).await;
    events.write_all(EVENTS).await.unwrap();
    nudge.notified().await;
    // However often it is told so: it is not the job that wakes the allocator.
    for count in 10_u32..30 {
        let targets = Targets { acceptable: Some(f64::from(count)), ..Targets::default() };
        feed.own(Owned { targets, direction: None });
        let (page, mut stream) = asked(&listener).await;
        assert_eq!(page, "/v1/progress");
        let json = serde_json::to_string(&of(|p| p.eval.count = count.into())).unwrap();
        stream.write_all(&ok(&json)).await.unwrap();
        timeout(PATIENCE, nudge.notified()).await.unwrap();
        assert_eq!(feed.heard().progress.unwrap().eval.count, u64::from(count));
    }
}

#[tokio::test]
async fn a_job_without_events_is_asked_again_and_again() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let (feed, _) = follow(listener.local_addr().unwrap(), Owned::default());
    let serve = async {
        for count in 1..3 {
            loop {
                let (page, mut stream) = asked(&listener).await;
                if page == "/v1/progress" {
                    let json = serde_json::to_string(&of(|p| p.eval.count = count)).unwrap();
                    stream.write_all(&ok(&json)).await.unwrap();
                    break;
                }
                let missing = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
                stream.write_all(missing).await.unwrap();
            }
        }
    };
    serve.await;
    let twice = heard(&feed, |heard| heard.progress.as_ref().is_some_and(|p| p.eval.count == 2));
    assert_eq!(twice.await.trouble, None);
}

#[tokio::test]
async fn a_job_that_talks_without_end_is_not_listened_to_and_keeps_what_it_said() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let (feed, _) = follow(listener.local_addr().unwrap(), Owned::default());
    let (_, mut stream) = asked(&listener).await;
    stream.write_all(&ok(&progress(1))).await.unwrap();
    let (_, mut stream) = asked(&listener).await;
    stream.write_all(EVENTS).await.unwrap();
    let endless = vec![b'x'; 1024 * 1024];
    let mut sent = 0;
    while sent < 64 * endless.len() && stream.write_all(&endless).await.is_ok() {
        sent += endless.len();
    }
    assert!(sent < 64 * endless.len(), "it was listened to for {sent} bytes");
    assert_eq!(feed.heard().progress.unwrap().eval.count, 9);
}

#[tokio::test]
async fn a_job_that_does_not_answer_is_in_trouble() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let (feed, _) = follow(address, Owned::default());
    let trouble = heard(&feed, |heard| heard.trouble.is_some()).await.trouble.unwrap();
    assert!(trouble.may_pass && trouble.text.contains("no answer from"), "{trouble:?}");
}

#[test]
fn what_a_policy_may_act_on_cannot_wait_and_nothing_else() {
    let before = of(|_| {});
    let urgent = |change: fn(&mut Progress)| cannot_wait(&before, &of(change));
    let reached = |change: fn(&mut Progress)| has_reached(&before, &of(change), Owned::default());
    assert!(reached(|p| p.reached.objective_at = Some(1.0)));
    assert!(!urgent(|p| p.reached.objective_at = Some(1.0)), "not to every policy");
    assert!(urgent(|p| p.state = State::Finished));
    assert!(urgent(|p| p.instance = "another".to_owned()));
    assert!(urgent(|p| p.checkpoint.saved = 1));
    assert!(!urgent(|p| p.state = State::Starting));
    let silent = of(|p| p.state = State::Starting);
    assert!(cannot_wait(&silent, &before), "it has begun to report");
    assert!(!urgent(|p| p.eval.count = 10));
    assert!(!reached(|p| p.eval.value = Some(0.1)), "the job itself says what it has reached");
}

#[test]
fn a_target_that_the_job_does_not_know_of_is_watched_for_it() {
    let owned = |direction| Owned {
        targets: Targets { acceptable: Some(1.0), ..Targets::default() },
        direction,
    };
    let (above, below) = (of(|p| p.eval.value = Some(1.5)), of(|p| p.eval.value = Some(0.5)));
    assert!(has_reached(&above, &below, owned(None)));
    assert!(!has_reached(&below, &above, owned(None)));
    assert!(!has_reached(&below, &below, owned(None)), "once is enough");
    assert!(has_reached(&below, &above, owned(Some(Direction::Maximize))));
}
