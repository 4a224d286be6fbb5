use std::path::PathBuf;

use paceline_api::audit::{Audit, Entry};
use paceline_api::live::{self, DaemonChannels, Order, Who};
use paceline_policy::Share;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::task::JoinSet;

use super::*;

struct TestServer {
    folder: TempDir,
    channels: DaemonChannels,
    _control: Control,
}

impl TestServer {
    fn open() -> Self {
        Self::with(Snapshot { version: "9".to_owned(), ..Snapshot::default() })
    }

    /// The server of a run that writes nothing.
    fn dry() -> Self {
        let mut first = Snapshot::default();
        first.policy.dry_run = true;
        Self::with(first)
    }

    fn with(first: Snapshot) -> Self {
        let folder = tempfile::Builder::new()
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700))
            .tempdir()
            .unwrap();
        let (live, channels) = live::pair(first);
        let control = serve(&folder.path().join("socket"), live, folder.path().to_owned()).unwrap();
        Self { folder, channels, _control: control }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// Sends bytes and returns the answer.
    async fn say(&self, bytes: &[u8]) -> Reply {
        let mut stream = UnixStream::connect(self.path()).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        serde_json::from_slice(&answer).unwrap()
    }
}

fn pin(name: &str) -> Command {
    Command::Pin { name: name.to_owned(), share: Share::nearest(0.5) }
}

#[tokio::test]
async fn order_reaches_the_controller_with_user_and_process() {
    let mut server = TestServer::open();
    let path = server.path();
    let request = Request::Order(pin("vae"));
    let (reply, ()) = tokio::join!(ask(&path, &request), async {
        let Order { command, who, answer } = server.channels.orders.recv().await.unwrap();
        let me = Who { uid: rustix::process::geteuid().as_raw(), pid: Some(std::process::id()) };
        assert_eq!((command, who), (pin("vae"), me));
        answer.send(Err(Refusal::Unknown("vae".to_owned()))).unwrap();
    });
    assert_eq!(reply.unwrap(), Reply::Refused(Refusal::Unknown("vae".to_owned())));
}

#[tokio::test]
async fn orders_of_many_clients_are_all_carried_out() {
    let mut server = TestServer::open();
    let mut clients = JoinSet::new();
    for number in 0..50 {
        let path = server.path();
        let request = Request::Order(pin(&number.to_string()));
        clients.spawn(async move { ask(&path, &request).await.unwrap() });
    }
    let mut done = Vec::new();
    while done.len() < 50 {
        let order = server.channels.orders.recv().await.unwrap();
        let name = order.command.name().unwrap().to_owned();
        order.answer.send(Ok(name.clone())).unwrap();
        done.push(name);
    }
    let mut replies: Vec<String> = clients
        .join_all()
        .await
        .into_iter()
        .map(|reply| if let Reply::Done(name) = reply { name } else { panic!("{reply:?}") })
        .collect();
    replies.sort();
    done.sort();
    assert_eq!(replies, done);
}

#[tokio::test]
async fn every_client_may_read_the_snapshot_and_the_log() {
    let server = TestServer::open();
    let Reply::Status(snapshot) = ask(&server.path(), &Request::Status).await.unwrap() else {
        panic!("no snapshot");
    };
    assert_eq!(snapshot.version, "9");
    let mut log = Audit::open(server.folder.path()).unwrap();
    let gone = |job: &str| Entry::Gone { job: job.to_owned(), container: format!("of-{job}") };
    for job in ["a", "b", "c"] {
        log.write(&gone(job));
    }
    for (tail, expected) in [
        (Tail { last: 2, job: None }, vec![gone("b"), gone("c")]),
        (Tail { last: 2, job: Some("a".to_owned()) }, vec![gone("a")]),
    ] {
        let Reply::Audit(lines) = ask(&server.path(), &Request::Audit(tail)).await.unwrap() else {
            panic!("no entries");
        };
        assert_eq!(lines.into_iter().map(|line| line.entry).collect::<Vec<_>>(), expected);
    }
}

#[tokio::test]
async fn invalid_request_is_answered_with_the_reason() {
    let server = TestServer::open();
    for (bytes, why) in [
        ("\n", "invalid request"),
        ("hello\n", "invalid request"),
        ("{\"order\":{\"command\":\"pin\",\"name\":\"a\",\"share\":7}}\n", "above 0 and at most 1"),
        ("{\"order\":{\"command\":\"fly\",\"name\":\"a\"}}\n", "fly"),
        // Lines without an end.
        ("[".repeat(1000).as_str(), "at most"),
        ("[".repeat(16 * 1024).as_str(), "at most"),
    ] {
        let reply = server.say(bytes.as_bytes()).await;
        assert!(matches!(&reply, Reply::Failed(said) if said.contains(why)), "{reply:?}");
    }
    // A request that is far too long is not read, and does not disturb other clients.
    let mut stream = UnixStream::connect(server.path()).await.unwrap();
    drop(stream.write_all("[".repeat(1 << 20).as_bytes()).await);
    assert!(matches!(ask(&server.path(), &Request::Status).await, Ok(Reply::Status(_))));
}

#[tokio::test]
async fn silent_clients_are_disconnected_and_delay_no_others() {
    let server = TestServer::open();
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(UnixStream::connect(server.path()).await.unwrap());
    }
    let path = server.path();
    let reply = ask(&path, &Request::Status).await;
    assert!(matches!(reply, Ok(Reply::Status(_))), "{reply:?}");
}

#[tokio::test]
async fn missing_or_dead_socket_is_reported_as_not_running() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    assert!(matches!(ask(&path, &Request::Status).await, Err(AskError::NotRunning(_))));
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(matches!(ask(&path, &Request::Status).await, Err(AskError::NotRunning(_))));
}

#[tokio::test(start_paused = true)]
async fn hung_allocator_is_reported_after_seconds_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    // It accepts, and answers nothing.
    let _hung = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let began = tokio::time::Instant::now();
    let error = ask(&path, &Request::Status).await.unwrap_err();
    assert!(began.elapsed() < std::time::Duration::from_secs(10));
    let error = error.to_string();
    assert!(error.contains("no answer within 5 s; look at its log"), "{error}");
}

#[tokio::test]
async fn dry_run_says_that_it_writes_no_audit_log() {
    let (dry, other) = (TestServer::dry(), TestServer::open());
    for job in [None, Some("a".to_owned())] {
        let request = Request::Audit(Tail { last: 2, job });
        let reply = ask(&dry.path(), &request).await.unwrap();
        let Reply::Refused(Refusal::Impossible(why)) = &reply else { panic!("{reply:?}") };
        assert!(why.contains("a dry run writes no audit log"), "{why}");
        assert_ne!(ask(&other.path(), &request).await.unwrap(), reply);
    }
}
