use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use paceline_runtime::testing::described;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::*;

/// The way to an address of the machine.
pub(super) fn reach() -> Reach {
    Reach::new(Path::new("/proc"), &described(serde_json::json!({"Id": "a"})))
}

/// The result of a read when the endpoint sends `answer` to any request.
async fn answered(answer: Vec<u8>) -> Result<Progress, EndpointError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let route = Route::Address(listener.local_addr().unwrap());
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut asked = [0; 1024];
        assert!(stream.read(&mut asked).await.unwrap() > 0);
        // The reader may have disconnected before the end of a long answer.
        drop(stream.write_all(&answer).await);
    };
    let routes = [route];
    let reach = reach();
    let (read, ()) = tokio::join!(read(&reach, &routes), serve);
    read.map(|(_, progress)| progress)
}

pub(super) fn ok(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

pub(super) fn progress(schema: u32) -> String {
    format!(
        r#"{{"schema": {schema}, "job": "vae", "pid": 7, "instance": "01J", "source": "reporter",
            "state": "running", "started_at": 1.0, "now": 2.0, "step": 9, "epoch": 1,
            "total_steps": null, "later": true,
            "eval": {{"name": "loss", "direction": "minimize", "value": 1.5, "window": 5,
                     "updated_at": 2.0, "count": 9, "sum": 18.0, "first": 3.0, "best": 1.0,
                     "max_abs": 3.0}},
            "batch_latency": {{"count": 9, "sum": 0.9, "last": 0.1, "p50": 0.1, "p95": null,
                              "p99": null}},
            "targets": {{"acceptable": 1.0, "objective": null, "batch_latency": null}},
            "reached": {{"acceptable_at": null, "objective_at": null}},
            "checkpoint": {{"requested": 0, "saved": 0, "step": null, "path": null, "at": null,
                           "error": null}},
            "dropped": 0, "rejected": 0}}"#
    )
}

#[test]
fn page_of_a_job_is_at_a_port_of_the_machine() {
    let container = |mode: &str, ports: serde_json::Value| {
        described(serde_json::json!({
            "Id": "a",
            "HostConfig": {"NetworkMode": mode},
            "NetworkSettings": {"Ports": ports},
        }))
    };
    let port = Endpoint::Port(7223);
    let none = || serde_json::json!({});
    let host = page(&container("host", none()), &port);
    assert_eq!(host.as_deref(), Some("http://127.0.0.1:7223/"));
    let published = serde_json::json!({"7223/tcp": [{"HostIp": "0.0.0.0", "HostPort": "8000"}]});
    let published = page(&container("bridge", published), &port);
    assert_eq!(published.as_deref(), Some("http://127.0.0.1:8000/"));
    assert_eq!(page(&container("bridge", none()), &port), None);
    assert_eq!(page(&container("host", none()), &Endpoint::Unix("/job.sock".into())), None);
}

#[tokio::test]
async fn report_with_unknown_fields_is_read() {
    let read = answered(ok(&progress(1))).await.unwrap();
    assert_eq!((read.job.as_str(), read.eval.count), ("vae", 9));
}

#[tokio::test]
async fn garbage_is_distinguished_from_silence() {
    let garbage = answered(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()).await.unwrap_err();
    assert!(matches!(garbage, EndpointError::Http(..)), "{garbage:?}");
    let html = answered(ok("<html>")).await.unwrap_err();
    assert!(matches!(html, EndpointError::Json(..)), "{html:?}");
    let missing = answered(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec()).await;
    assert!(matches!(missing.unwrap_err(), EndpointError::Status(_, _, StatusCode::NOT_FOUND)));
    let other = answered(ok(&progress(2))).await.unwrap_err();
    assert!(matches!(other, EndpointError::Schema(_, 2)), "{other:?}");
}

#[tokio::test]
async fn deeply_nested_report_is_refused_or_ignored() {
    let depth = MAX_ANSWER / 4;
    let nests = ["[", "{\"a\":"].map(|open| open.repeat(depth / open.len()));
    for nest in nests {
        // In place of a whole report, of a number, and of an unknown member.
        let broken = answered(ok(&nest)).await.unwrap_err();
        assert!(matches!(broken, EndpointError::Json(..)), "{broken:?}");
        for member in [r#""pid": 7"#, r#""later": true"#] {
            let (name, _) = member.split_once(' ').unwrap();
            let nested = progress(1).replace(member, &format!("{name} {nest}"));
            let broken = answered(ok(&nested)).await.unwrap_err();
            assert!(matches!(broken, EndpointError::Json(..)), "{member}: {broken:?}");
        }
    }
    let whole = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let nested = progress(1).replace("\"later\": true", &format!("\"later\": {whole}"));
    let read = answered(ok(&nested)).await.unwrap();
    assert_eq!((read.job.as_str(), read.eval.count), ("vae", 9), "the nested member is ignored");
}

#[tokio::test]
async fn endless_answer_is_cut_off() {
    let endless = answered(ok(&" ".repeat(MAX_ANSWER + 1))).await.unwrap_err();
    assert!(matches!(endless, EndpointError::Body(..)), "{endless:?}");
}

#[tokio::test(start_paused = true)]
async fn endpoint_that_never_answers_times_out() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let route = Route::Address(listener.local_addr().unwrap());
    let error = read(&reach(), &[route]).await.unwrap_err();
    assert!(matches!(error, EndpointError::Unreachable { .. }), "{error:?}");
}

/// The result of asking for a checkpoint when the endpoint sends `answer`; and the request's head.
async fn requested(answer: &[u8]) -> (Result<u64, EndpointError>, String) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let routes = [Route::Address(listener.local_addr().unwrap())];
    let serve = async {
        let mut heads = Vec::new();
        for answer in [ok(&progress(1)).as_slice(), answer] {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = [0; 1024];
            let length = stream.read(&mut asked).await.unwrap();
            heads.push(String::from_utf8_lossy(&asked[..length]).into_owned());
            stream.write_all(answer).await.unwrap();
        }
        heads.pop().unwrap()
    };
    let reach = reach();
    let (asked, head) = tokio::join!(request_checkpoint(&reach, &routes), serve);
    (asked.map(|(_, number)| number), head)
}

#[tokio::test]
async fn checkpoint_is_requested_by_post_and_numbered() {
    let taken = b"HTTP/1.1 202 Accepted\r\ncontent-length: 15\r\n\r\n{\"requested\":3}";
    let (number, head) = requested(taken).await;
    assert_eq!(number.unwrap(), 3);
    assert!(head.starts_with("POST /v1/checkpoint HTTP/1.1\r\n"), "{head}");
    let refused = b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n";
    let error = requested(refused).await.0.unwrap_err().to_string();
    assert!(error.ends_with("answers POST /v1/checkpoint with status 405 Method Not Allowed"));
    let error = requested(&ok("{}")).await.0.unwrap_err();
    assert!(matches!(error, EndpointError::Json(..)), "{error:?}");
}

/// A process that sees a file system which never answers. Both end when this is dropped.
struct HungMount {
    process: Child,
    place: tempfile::TempDir,
}

impl HungMount {
    /// `None` where this user cannot mount one.
    fn new() -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        // It is mounted for this process alone, as for a container. No program serves it.
        let script = "exec 3<>/dev/fuse && mount -i -t fuse \
             -o fd=3,rootmode=40000,user_id=0,group_id=0 hung \"$1\" && echo ready && exec cat";
        let mut process = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"])
            .arg(place.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut ready = String::new();
        BufReader::new(process.stdout.take()?).read_line(&mut ready).unwrap();
        let hung = Self { process, place };
        (ready == "ready\n").then_some(hung)
    }
}

impl Drop for HungMount {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

#[tokio::test]
async fn file_system_that_hangs_blocks_one_job_alone() {
    let Some(hung) = HungMount::new() else { return };
    let pid = hung.process.id();
    let json = serde_json::json!({"Id": "a", "State": {"Running": true, "Pid": pid}});
    let reach = Reach::new(Path::new("/proc"), &described(json));
    let root = Path::new("/proc").join(pid.to_string()).join("root");
    let routes = [Route::Unix { root, path: hung.place.path().join("job.sock") }];
    for _ in 0..2 {
        timeout(Duration::from_millis(50), read(&reach, &routes)).await.unwrap_err();
    }
    let error = format!("{:#}", anyhow::Error::from(read(&reach, &routes).await.unwrap_err()));
    assert!(error.contains("job.sock") && error.contains("are still blocked"), "{error}");
    assert_eq!(answered(ok(&progress(1))).await.unwrap().job, "vae", "another job is read");
    drop(hung);
    // Its threads come back.
    while format!("{:#}", anyhow::Error::from(read(&reach, &routes).await.unwrap_err()))
        .contains("still blocked")
    {
        tokio::task::yield_now().await;
    }
}

/// Without a container around the job, a path may lead to any socket of the machine.
#[tokio::test]
async fn socket_of_another_user_than_the_jobs_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let listener = tokio::net::UnixListener::bind(folder.path().join("job.sock")).unwrap();
    let this = rustix::process::geteuid().as_raw();
    let route = Route::Unix { root: folder.path().to_owned(), path: "/job.sock".into() };
    for (owner, refused) in [(this, false), (this + 1, true)] {
        let json = serde_json::json!({"Id": "job-0123456789abcdef",
            "Config": {"Labels": {"paceline.owner": owner.to_string()}}});
        let reach = Reach::new(Path::new("/proc"), &described(json));
        let body = progress(SCHEMA);
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            // An answer before the request would break the connection.
            if stream.read(&mut [0; 1024]).await.is_ok_and(|read| read > 0) {
                drop(stream.write_all(&ok(&body)).await);
            }
        };
        let routes = [route.clone()];
        let (read, ()) = tokio::join!(read(&reach, &routes), serve);
        assert_eq!(read.is_err(), refused, "{owner}: {read:?}");
    }
}

#[tokio::test]
async fn late_answer_is_asked_for_again_and_a_refusal_is_not() {
    let failed = |kind: io::ErrorKind| EndpointError::Unreachable {
        route: "port 1".to_owned(),
        source: kind.into(),
    };
    for (kind, late, tries) in [
        (io::ErrorKind::TimedOut, 2, 3),
        (io::ErrorKind::TimedOut, usize::MAX, CHECKPOINT_TRIES),
        (io::ErrorKind::ConnectionRefused, 2, 1),
    ] {
        let mut asked = 0;
        let answer = while_late(|| {
            asked += 1;
            std::future::ready(if asked > late { Ok(()) } else { Err(failed(kind)) })
        });
        let answer = answer.await;
        assert_eq!((answer.is_ok(), asked), (tries > late, tries), "{kind:?}");
    }
}
