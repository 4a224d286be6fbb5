//! HTTP over the control socket, beside lines of JSON.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

use std::sync::Arc;
use std::time::Duration;

use paceline_api::audit::{Audit, Entry};
use paceline_api::live::snapshot::{JobView, Standing};
use paceline_api::live::{Command, DaemonChannels, Order, Refusal, Snapshot, Who, pair};
use paceline_policy::Share;
use paceline_server::control::{self, Control};
use paceline_server::web::{self, Address, Settings, Snapshots, Web};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, sleep};

const ORDER: &str = r#"{"command":"pin","name":"vae","share":0.5}"#;
const MAX_LEN: usize = 16 * 1024;

/// A control socket and a page of one run.
struct Served {
    folder: TempDir,
    channels: DaemonChannels,
    web: Web,
    _control: Control,
}

/// The status and the content of an answer.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Served {
    async fn start() -> Self {
        let folder = tempfile::Builder::new()
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700))
            .tempdir()
            .unwrap();
        let (live, channels) = pair(Snapshot::default());
        let snapshots = Snapshots::from(live);
        let path = folder.path().join("socket");
        let control = control::serve(&path, snapshots.clone(), folder.path().to_owned()).unwrap();
        let listen = Some("127.0.0.1:0".parse().unwrap());
        let settings = Settings { listen, ..Settings::default() };
        let web = web::serve(&settings, snapshots, None).await.unwrap().unwrap();
        let served = Self { folder, channels, web, _control: control };
        assert_eq!(served.get("/readyz").await.status, 503);
        let job = "a/b c".to_owned();
        let jobs = vec![JobView { job, standing: Standing::Managed, ..JobView::default() }];
        let snapshot = Snapshot { version: "9".to_owned(), jobs, t: 1.0, ..Snapshot::default() };
        served.channels.snapshots.send_replace(Arc::new(snapshot));
        while served.get("/readyz").await.status == 503 {}
        served
    }

    async fn connect(&self) -> UnixStream {
        UnixStream::connect(self.folder.path().join("socket")).await.unwrap()
    }

    /// Sends bytes, and reads to the end.
    async fn say(&self, bytes: &str) -> String {
        exchange(self.connect().await, bytes).await
    }

    async fn ask(&self, request: &str) -> Answer {
        answer(&self.say(request).await)
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")).await
    }

    /// The same request to the page.
    async fn ask_page(&self, request: &str) -> Answer {
        let Address::Tcp(address) = self.web.address() else { unreachable!("it has a port") };
        let request = request.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n");
        answer(&exchange(TcpStream::connect(address).await.unwrap(), &request).await)
    }

    /// Sends an order whose answer from the controller is `outcome`.
    async fn order(&mut self, outcome: Result<String, Refusal>) -> Answer {
        let request = post(ORDER);
        let stream = self.connect().await;
        let (text, ()) = tokio::join!(exchange(stream, &request), async {
            let Order { command, who, answer } = self.channels.orders.recv().await.unwrap();
            let name = "vae".to_owned();
            assert_eq!(command, Command::Pin { name, share: Share::nearest(0.5) });
            let uid = rustix::process::geteuid().as_raw();
            assert_eq!(who, Who { uid, pid: Some(std::process::id()) });
            answer.send(outcome).unwrap();
        });
        answer(&text)
    }
}

async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, bytes: &str) -> String {
    // The server may disconnect before all of it is written.
    drop(stream.write_all(bytes.as_bytes()).await);
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer).await);
    String::from_utf8(answer).unwrap()
}

fn answer(text: &str) -> Answer {
    let (head, body) = text.split_once("\r\n\r\n").expect(text);
    let status = head["HTTP/1.1 ".len()..][..3].parse().unwrap();
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

fn post(body: &str) -> String {
    let length = body.len();
    format!("POST /v1/orders HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{body}")
}

impl Answer {
    fn json(&self) -> Value {
        assert!(self.head.contains("content-type: application/json"), "{}", self.head);
        serde_json::from_str(&self.body).unwrap()
    }

    /// Asserts a failure in the form of the JSON lines.
    fn assert_failed(&self, status: u16, why: &str) {
        let json = self.json();
        assert!(json["failed"].as_str().unwrap().contains(why), "{json}");
        assert_eq!(self.status, status, "{json}");
    }
}

#[tokio::test]
async fn every_route_of_the_page_answers_in_the_same_way() {
    let served = Served::start().await;
    for (method, path, status) in [
        ("GET", "/v1/status", 200),
        ("HEAD", "/v1/status", 200),
        ("GET", "/v1/decisions?job=a%2Fb%20c", 200),
        ("GET", "/v1/decisions", 400),
        ("GET", "/v1/jobs/a%2Fb%20c/history", 200),
        ("GET", "/v1/jobs/a/b%20c/history", 200),
        ("GET", "/v1/jobs/other/history", 404),
        ("GET", "/v1/jobs/other", 404),
        ("GET", "/metrics", 200),
        ("GET", "/healthz", 200),
        ("GET", "/readyz", 200),
        ("GET", "/", 200),
        ("GET", "/nowhere", 404),
        ("POST", "/v1/status", 405),
        ("DELETE", "/nowhere", 405),
    ] {
        let request = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let answer = served.ask(&request).await;
        assert_eq!(answer.status, status, "{method} {path}");
        let page = served.ask_page(&request).await;
        assert_eq!((answer.status, answer.body), (page.status, page.body), "{method} {path}");
        assert_eq!(answer.head.contains("allow: GET, HEAD"), status == 405);
    }
    assert_eq!(served.get("/v1/status").await.json()["version"], "9");
}

#[tokio::test]
async fn listeners_of_events_leave_room_for_others() {
    let served = Served::start().await;
    let mut held = Vec::new();
    for number in 0..12 {
        let mut stream = served.connect().await;
        let request = b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.unwrap();
        assert_eq!(&head[9..] == b"200", number < 8);
        held.push(stream);
    }
    let mut text = String::new();
    while !text.contains("data: {") {
        let mut buffer = [0; 4096];
        let length = held[0].read(&mut buffer).await.unwrap();
        text.push_str(std::str::from_utf8(&buffer[..length]).unwrap());
    }
    assert_eq!(served.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn audit_has_the_same_records_in_both_forms() {
    let served = Served::start().await;
    let mut log = Audit::open(served.folder.path()).unwrap();
    for job in ["a", "b/ü", "c"] {
        log.write(&Entry::Gone { job: job.to_owned(), container: format!("of-{job}") });
    }
    for (query, tail, count) in [
        ("last=2", json!({"last": 2}), 2),
        ("last=20&job=b%2F%C3%BC", json!({"last": 20, "job": "b/ü"}), 1),
        ("job=a&last=1", json!({"last": 1, "job": "a"}), 1),
        ("last=0", json!({"last": 0}), 0),
    ] {
        let answer = served.get(&format!("/v1/audit?{query}")).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.json()["audit"].as_array().unwrap().len(), count, "{query}");
        assert_eq!(answer.body, served.say(&format!("{}\n", json!({"audit": tail}))).await);
    }
    for query in ["", "?last=-1", "?last=70000", "?job=a", "?last=1&first=1", "?last=1&last=2"] {
        served.get(&format!("/v1/audit{query}")).await.assert_failed(400, "last=20&job=NAME");
    }
    let path = served.folder.path().join("audit.jsonl");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(path).unwrap();
    served.get("/v1/audit?last=9").await.assert_failed(500, "cannot read the audit log");
}

#[tokio::test]
async fn status_of_an_order_is_its_outcome() {
    let mut served = Served::start().await;
    let done = served.order(Ok("vae is pinned".to_owned())).await;
    assert_eq!((done.status, done.json()), (200, json!({"done": "vae is pinned"})));
    let unknown = served.order(Err(Refusal::Unknown("vae".to_owned()))).await;
    let reply = json!({"refused": {"refusal": "unknown", "detail": "vae"}});
    assert_eq!((unknown.status, unknown.json()), (409, reply));
    let busy = served.order(Err(Refusal::Busy)).await;
    assert_eq!((busy.status, busy.json()), (503, json!({"refused": {"refusal": "busy"}})));
    for (body, why) in [
        ("", "EOF"),
        ("fly", "expected"),
        (r#"{"command":"fly","name":"a"}"#, "fly"),
        (r#"{"command":"pin","name":"a","share":7}"#, "above 0 and at most 1"),
        (r#"{"order":{"command":"manage","name":"a"}}"#, "command"),
    ] {
        served.ask(&post(body)).await.assert_failed(400, why);
    }
}

#[tokio::test(start_paused = true)]
async fn order_that_takes_too_long_is_answered_as_busy() {
    let mut served = Served::start().await;
    let stream = served.connect().await;
    let request = post(ORDER);
    let (text, _order) = tokio::join!(exchange(stream, &request), served.channels.orders.recv());
    answer(&text).assert_failed(503, "the allocator is busy");
}

#[tokio::test]
async fn page_has_neither_orders_nor_the_audit_log() {
    let served = Served::start().await;
    let audit = "GET /v1/audit?last=1 HTTP/1.1\r\nhost: localhost\r\n\r\n";
    assert_eq!(served.ask_page(audit).await.status, 404);
    assert_eq!(served.ask_page(&audit.replace("audit", "orders")).await.status, 404);
    assert_eq!(served.ask_page(&post(ORDER)).await.status, 405);
}

#[tokio::test]
async fn other_methods_are_refused_with_the_allowed_ones() {
    let served = Served::start().await;
    for (method, path, allowed) in [
        ("GET", "/v1/orders", "POST"),
        ("PUT", "/v1/orders", "POST"),
        ("POST", "/v1/audit", "GET,HEAD"),
        ("DELETE", "/v1/audit", "GET,HEAD"),
    ] {
        let request = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let answer = served.ask(&request).await;
        answer.assert_failed(405, "invalid method: expected");
        assert!(answer.head.contains(&format!("allow: {allowed}")), "{}", answer.head);
    }
}

#[tokio::test]
async fn first_byte_distinguishes_http_from_a_line_of_json() {
    let served = Served::start().await;
    for line in ["\"status\"\n", " \t\"status\"\n", "\r\"status\" \n"] {
        let reply: Value = serde_json::from_str(&served.say(line).await).unwrap();
        assert_eq!(reply["status"]["version"], "9", "{line:?}");
    }
    let reply = served.say("  {\"audit\":{\"last\":1}}\n").await;
    assert_eq!(reply, "{\"audit\":[]}\n");
    for line in ["\n", "get /v1/status HTTP/1.1\r\n", "\r\nGET / HTTP/1.1\r\n\r\n", "[]\n", "1\n"] {
        let reply: Value = serde_json::from_str(&served.say(line).await).unwrap();
        assert!(reply["failed"].as_str().unwrap().contains("invalid request"), "{line:?}: {reply}");
    }
    for request in ["GET /healthz HTTP/1.0\r\n\r\n", "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"] {
        assert!(served.say(request).await.ends_with("\r\n\r\nserving\n"), "{request:?}");
    }
    assert!(served.say("STATUS\n\n").await.starts_with("HTTP/1.1 400"));
}

#[tokio::test]
async fn connection_carries_one_request_and_may_be_half_closed() {
    let served = Served::start().await;
    let request = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    assert_eq!(served.say(&request.repeat(2)).await.matches("serving").count(), 1);
    let mut stream = served.connect().await;
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    assert!(exchange(stream, "").await.ends_with("serving\n"));
}

#[tokio::test]
async fn too_long_heads_and_bodies_are_refused() {
    let served = Served::start().await;
    let long = " ".repeat(MAX_LEN + 1);
    served.ask(&post(&long)).await.assert_failed(413, "at most 16384 bytes");
    served.ask(&post(&long[1..])).await.assert_failed(400, "EOF");
    served.ask(&post(&long.repeat(50))).await.assert_failed(413, "at most");
    let chunk = format!("{:x}\r\n{long}\r\n", long.len()).repeat(3);
    let head = "POST /v1/orders HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n";
    served.ask(&format!("{head}{chunk}0\r\n\r\n")).await.assert_failed(413, "at most");
    let path = "x".repeat(2 * MAX_LEN);
    for request in
        [format!("GET /{path} HTTP/1.1\r\n\r\n"), "GET / HTTP/1.1\r\n".to_owned() + &path]
    {
        assert!(!served.say(&request).await.starts_with("HTTP/1.1 200"));
    }
    assert_eq!(served.get("/healthz").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn slow_clients_are_disconnected_and_delay_no_others() {
    let served = Served::start().await;
    let start = Instant::now();
    let mut slow = Vec::new();
    for number in 0..16 {
        let mut stream = served.connect().await;
        if number % 2 == 0 {
            stream.write_all(b"GET / HTTP/1.1\r\nhost:").await.unwrap();
        } else {
            stream.write_all(&post(ORDER).as_bytes()[..80]).await.unwrap();
        }
        slow.push(stream);
    }
    sleep(Duration::from_millis(1500)).await;
    drop(slow[0].write_all(b" localhost\r\n").await);
    assert_eq!(served.get("/healthz").await.status, 200);
    for (number, stream) in slow.into_iter().enumerate() {
        let text = exchange(stream, "").await;
        if number % 2 == 1 {
            answer(&text).assert_failed(408, "invalid request");
        } else {
            assert!(!text.starts_with("HTTP/1.1 200"), "{text}");
        }
    }
    assert!(start.elapsed() < Duration::from_millis(2100), "{:?}", start.elapsed());
}
