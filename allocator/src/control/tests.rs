use std::path::PathBuf;

use paceline_policy::Share;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::task::JoinSet;

use super::*;
use crate::audit::{Audit, Entry};
use crate::live::{self, Backstage, Order, Who};

struct Office {
    folder: TempDir,
    backstage: Backstage,
    _control: Control,
}

impl Office {
    fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let first = Snapshot { version: "9".to_owned(), ..Snapshot::default() };
        let (live, backstage) = live::pair(first);
        let control = serve(&folder.path().join("socket"), live, folder.path().to_owned()).unwrap();
        Self { folder, backstage, _control: control }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// Sends bytes and gives what is answered.
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
async fn an_order_reaches_the_driver_with_the_name_of_who_gave_it() {
    let mut office = Office::open();
    let path = office.path();
    let request = Request::Order(pin("vae"));
    let (reply, ()) = tokio::join!(ask(&path, &request), async {
        let Order { command, who, answer } = office.backstage.orders.recv().await.unwrap();
        let me = Who { uid: rustix::process::geteuid().as_raw(), pid: Some(std::process::id()) };
        assert_eq!((command, who), (pin("vae"), me));
        answer.send(Err(Refusal::Unknown("vae".to_owned()))).unwrap();
    });
    assert_eq!(reply.unwrap(), Reply::Refused(Refusal::Unknown("vae".to_owned())));
}

#[tokio::test]
async fn what_many_clients_order_at_once_is_all_done() {
    let mut office = Office::open();
    let mut clients = JoinSet::new();
    for number in 0..50 {
        let path = office.path();
        let request = Request::Order(pin(&number.to_string()));
        clients.spawn(async move { ask(&path, &request).await.unwrap() });
    }
    let mut done = Vec::new();
    while done.len() < 50 {
        let order = office.backstage.orders.recv().await.unwrap();
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
async fn whoever_may_connect_sees_the_snapshot_and_the_log() {
    let office = Office::open();
    let Reply::Status(snapshot) = ask(&office.path(), &Request::Status).await.unwrap() else {
        panic!("no snapshot");
    };
    assert_eq!(snapshot.version, "9");
    let mut log = Audit::open(office.folder.path()).unwrap();
    let gone = |job: &str| Entry::Gone { job: job.to_owned(), container: format!("of-{job}") };
    for job in ["a", "b", "c"] {
        log.write(&gone(job));
    }
    for (tail, expected) in [
        (Tail { last: 2, job: None }, vec![gone("b"), gone("c")]),
        (Tail { last: 2, job: Some("a".to_owned()) }, vec![gone("a")]),
    ] {
        let Reply::Audit(lines) = ask(&office.path(), &Request::Audit(tail)).await.unwrap() else {
            panic!("no entries");
        };
        assert_eq!(lines.into_iter().map(|line| line.entry).collect::<Vec<_>>(), expected);
    }
}

#[tokio::test]
async fn what_is_no_request_is_answered_with_the_reason() {
    let office = Office::open();
    for (bytes, why) in [
        ("\n", "the request is not one"),
        ("hello\n", "the request is not one"),
        ("{\"order\":{\"command\":\"pin\",\"name\":\"a\",\"share\":7}}\n", "a share is above 0"),
        ("{\"order\":{\"command\":\"fly\",\"name\":\"a\"}}\n", "fly"),
        // It says no more, and does not end its line.
        ("[".repeat(1000).as_str(), "at most"),
        ("[".repeat(16 * 1024).as_str(), "at most"),
    ] {
        let reply = office.say(bytes.as_bytes()).await;
        assert!(matches!(&reply, Reply::Failed(said) if said.contains(why)), "{reply:?}");
    }
    // One that says more than it may is not listened to, and harms nobody.
    let mut stream = UnixStream::connect(office.path()).await.unwrap();
    drop(stream.write_all("[".repeat(1 << 20).as_bytes()).await);
    assert!(matches!(ask(&office.path(), &Request::Status).await, Ok(Reply::Status(_))));
}

#[tokio::test]
async fn those_who_say_nothing_are_sent_away_and_hold_up_nobody() {
    let office = Office::open();
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(UnixStream::connect(office.path()).await.unwrap());
    }
    let path = office.path();
    let reply = ask(&path, &Request::Status).await;
    assert!(matches!(reply, Ok(Reply::Status(_))), "{reply:?}");
}

#[tokio::test]
async fn a_socket_that_is_not_served_is_told_from_one_that_is_closed_to_us() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    assert!(matches!(ask(&path, &Request::Status).await, Err(AskError::Nobody(_))));
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(matches!(ask(&path, &Request::Status).await, Err(AskError::Nobody(_))));
}
