use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// What reading gives when the endpoint sends `answer` to whatever it is asked.
async fn answered(answer: Vec<u8>) -> Result<Progress, EndpointError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let way = Way::Address(listener.local_addr().unwrap());
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut asked = [0; 1024];
        assert!(stream.read(&mut asked).await.unwrap() > 0);
        // The reader may have hung up before the end of a long answer.
        drop(stream.write_all(&answer).await);
    };
    let ways = [way];
    let (read, ()) = tokio::join!(read(Path::new("/proc"), &ways), serve);
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

#[tokio::test]
async fn a_progress_report_is_read_whatever_else_it_holds() {
    let read = answered(ok(&progress(1))).await.unwrap();
    assert_eq!((read.job.as_str(), read.eval.count), ("vae", 9));
}

#[tokio::test]
async fn garbage_is_told_apart_from_silence() {
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
async fn a_report_that_is_nested_deeply_is_refused_or_passed_over() {
    let depth = LONGEST / 4;
    let nests = ["[", "{\"a\":"].map(|open| open.repeat(depth / open.len()));
    for nest in nests {
        // In place of a whole report, of a number, and of a member that is not known.
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
    assert_eq!((read.job.as_str(), read.eval.count), ("vae", 9), "what it holds beside is nothing");
}

#[tokio::test]
async fn an_endless_answer_is_cut_off() {
    let endless = answered(ok(&" ".repeat(LONGEST + 1))).await.unwrap_err();
    assert!(matches!(endless, EndpointError::Body(..)), "{endless:?}");
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_never_answers_is_given_up() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let way = Way::Address(listener.local_addr().unwrap());
    let error = read(Path::new("/proc"), &[way]).await.unwrap_err();
    assert!(matches!(error, EndpointError::Unreachable { .. }), "{error:?}");
}

/// What asking for a checkpoint gives when the endpoint answers so; and the request.
async fn requested(answer: &[u8]) -> (Result<u64, EndpointError>, String) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let ways = [Way::Address(listener.local_addr().unwrap())];
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
    let (asked, head) = tokio::join!(request_checkpoint(Path::new("/proc"), &ways), serve);
    (asked.map(|(_, number)| number), head)
}

#[tokio::test]
async fn a_checkpoint_is_asked_for_by_a_post_and_has_a_number() {
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
