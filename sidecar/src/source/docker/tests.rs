//! The engine's frames, its address and its answers, without an engine.

use std::time::Duration;

use paceline_grammar::Patterns;
use paceline_lines::terminal::wrapping::Stream;
use paceline_reporter::Reporter;
use paceline_reporter::wire::Progress;
use proptest::prelude::*;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::Container;
use super::engine::{Engine, EngineError};
use super::frames::Frames;
use crate::job::Job;
use crate::merger::Hints;
use crate::state::SeenSoFar;

fn frame(stream: u8, text: &[u8]) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap().to_be_bytes();
    [&[stream, 0, 0, 0], &length[..], text].concat()
}

/// What was read of each stream, with the bytes cut into chunks.
fn read(tty: bool, bytes: &[u8], chunk: usize) -> (Vec<u8>, Vec<u8>) {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut frames = Frames::new(tty);
    for bytes in bytes.chunks(chunk) {
        frames.feed(bytes, |stream, text| match stream {
            Stream::Stdout => stdout.extend_from_slice(text),
            Stream::Stderr => stderr.extend_from_slice(text),
        });
    }
    (stdout, stderr)
}

proptest! {
    #[test]
    fn frames_cut_anywhere_keep_each_streams_bytes(
        pieces in prop::collection::vec((1_u8..=2, prop::collection::vec(any::<u8>(), 0..40)), 0..12),
        chunk in 1_usize..30,
    ) {
        let bytes: Vec<u8> = pieces.iter().flat_map(|(stream, text)| frame(*stream, text)).collect();
        let of = |wanted| -> Vec<u8> {
            pieces.iter().filter(|(stream, _)| *stream == wanted).flat_map(|(_, text)| text.clone()).collect()
        };
        prop_assert_eq!(read(false, &bytes, chunk), (of(1), of(2)));
    }
}

#[test]
fn terminal_output_has_no_headers() {
    let bytes = b"\x01\x00\x00\x00\x00\x00\x00\x05epoch";
    assert_eq!(read(true, bytes, 3), (bytes.to_vec(), Vec::new()));
}

#[test]
fn addresses_are_read_as_the_engines_command_reads_them() {
    assert_eq!(
        Engine::new("unix:///run/docker.sock").unwrap(),
        Engine::Unix("/run/docker.sock".into())
    );
    assert_eq!(
        Engine::new("tcp://127.0.0.1:2375").unwrap(),
        Engine::Tcp("127.0.0.1:2375".to_owned())
    );
    for host in ["", "docker", "unix://relative", "tcp://", "ssh://host", "https://host:2376"] {
        let error = Engine::new(host).unwrap_err().to_string();
        assert!(error.starts_with(&format!("invalid DOCKER_HOST \"{host}\": expected")), "{error}");
    }
}

/// An engine that gives one answer to each connection, in order; what it was asked.
async fn serve(listener: UnixListener, answers: &[&str]) -> Vec<String> {
    let mut asked = Vec::new();
    for answer in answers {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let byte = stream.read_u8().await.unwrap();
            request.push(byte);
        }
        asked.push(String::from_utf8(request).unwrap());
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
    asked
}

fn answer(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn engine_answers_are_read_and_refusals_keep_its_message() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("engine.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let engine = Engine::Unix(path);
    let running =
        answer("200 OK", r#"{"State":{"Running":true,"ExitCode":0},"Config":{"Tty":true}}"#);
    let ended = answer("200 OK", r#"{"State":{"Running":false,"ExitCode":3}}"#);
    let missing = answer("404 Not Found", r#"{"message":"No such container: job"}"#);
    let attached = "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nloss";
    let answers = [running.as_str(), &ended, &missing, attached];
    let asked = async {
        let first = engine.inspect("job").await.unwrap();
        assert!(first.tty() && first.ended().is_none());
        let second = engine.inspect("job").await.unwrap();
        assert!(!second.tty() && second.ended() == Some(false));
        let third = engine.inspect("job").await.unwrap_err();
        assert_eq!(
            third.to_string(),
            "the container engine answered 404 Not Found: No such container: job"
        );
        let mut output = engine.attach("job", true).await.unwrap();
        let mut text = String::new();
        output.read_to_string(&mut text).await.unwrap();
        text
    };
    let (requests, text) = tokio::join!(serve(listener, &answers), asked);
    assert_eq!(text, "loss");
    assert!(requests[0].starts_with("GET /containers/job/json HTTP/1.1\r\n"), "{}", requests[0]);
    let attach = "POST /containers/job/attach?stdout=1&stderr=1&stream=1&logs=1 HTTP/1.1\r\n";
    assert!(requests[3].starts_with(attach), "{}", requests[3]);
}

/// The progress after a container's whole output was read, and how much of it that was.
async fn read_to_end(
    before: Option<(Progress, SeenSoFar)>,
    id: &str,
    output: &str,
) -> (Progress, SeenSoFar) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("engine.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let socket = folder.path().join("sidecar.sock");
    let builder = Reporter::builder("vae").listen(&format!("unix:{}", socket.display()));
    let (progress, seen) = before.unzip();
    let builder = progress.into_iter().fold(builder, paceline_reporter::Builder::resume);
    let job = Job::start(builder, Hints::default()).unwrap();
    let container = Container::of_engine(Engine::Unix(path), &job, "job", &Patterns::default());
    container.seen.lock().clone_from(&seen.unwrap_or_default());
    let seen = container.seen();
    let described = |running: bool| {
        let body = serde_json::json!({"Id": id, "State": {"Running": running, "ExitCode": 0},
            "Config": {"Tty": true}});
        answer("200 OK", &body.to_string())
    };
    let attached =
        format!("HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n{output}");
    let answers = [described(true), attached, described(false)];
    let answers = answers.each_ref().map(String::as_str);
    let (_stop, stopped) = watch::channel(false);
    let (_, ended) = tokio::join!(serve(listener, &answers), container.run(stopped));
    assert_eq!(ended, Some(true));
    let progress = job.progress().unwrap();
    job.close();
    let seen = seen.lock().clone();
    (progress, seen)
}

#[tokio::test]
async fn output_that_an_earlier_sidecar_has_reported_is_not_counted_again() {
    let line =
        |step: u32| format!("iter {step}: loss {:.4}, time 20.00ms\n", 5.0 / f64::from(step));
    let lines = |steps: std::ops::RangeInclusive<u32>| steps.map(line).collect::<Vec<_>>().concat();
    let first = Box::pin(read_to_end(None, "a", &lines(1..=3))).await;
    assert_eq!(
        (first.0.eval.count, first.1.bytes),
        (3, u64::try_from(lines(1..=3).len()).unwrap())
    );
    let second = Box::pin(read_to_end(Some(first.clone()), "a", &lines(1..=5))).await;
    assert_eq!((second.0.eval.count, second.0.step), (5, Some(5)));
    assert_eq!(second.1.bytes, u64::try_from(lines(1..=5).len()).unwrap());
    // Another container of this name has reported nothing yet.
    let (other, _) = Box::pin(read_to_end(Some(first), "b", &lines(1..=5))).await;
    assert_eq!(other.eval.count, 8);
}

#[tokio::test]
async fn engine_that_is_absent_and_bad_names_give_clear_errors() {
    let folder = TempDir::new().unwrap();
    let engine = Engine::Unix(folder.path().join("absent.sock"));
    let error = engine.inspect("job").await.unwrap_err();
    assert!(matches!(error, EngineError::Connect { .. }), "{error}");
    for name in ["", "a/b", "../etc", "job?x", "a b"] {
        let error = engine.inspect(name).await.unwrap_err();
        assert!(matches!(error, EngineError::Name(_)), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn engine_that_does_not_answer_delays_no_end() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("engine.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let builder = Reporter::builder("vae")
        .listen(&format!("unix:{}", folder.path().join("sidecar.sock").display()));
    let job = Job::start(builder, Hints::default()).unwrap();
    let container = Container::of_engine(Engine::Unix(path), &job, "job", &Patterns::default());
    let (stop, stopped) = watch::channel(false);
    let began = Instant::now();
    let stopping = async {
        // It has accepted the request, and keeps the connection.
        let _connection = listener.accept().await.unwrap();
        sleep(Duration::from_secs(1)).await;
        stop.send_replace(true);
        std::future::pending::<()>().await;
    };
    let ended = tokio::select! {
        ended = container.run(stopped) => ended,
        () = stopping => None,
    };
    assert_eq!((ended, began.elapsed()), (None, Duration::from_secs(1)));
    job.close();
}
