use std::path::Path;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, pem::PemObject};

use super::*;
use crate::proto::PartialSuccess;

const TEXT: &str = "# TYPE paceline_loss gauge\npaceline_loss 118.5\n";
const TIMES: Times = Times { start: 1.0, now: 2.0 };

/// A request: its head and its body.
type Request = (String, Vec<u8>);

/// An answer with this status line and body.
fn answer(status: &str, more: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\n{more}content-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn ok() -> Vec<u8> {
    answer("200 OK", "", b"")
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Request {
    let mut bytes = Vec::new();
    loop {
        stream.read_buf(&mut bytes).await.unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let Some(end) = text.find("\r\n\r\n") else { continue };
        let head = text[..end].to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        if bytes.len() >= end + 4 + length.parse::<usize>().unwrap() {
            return (head, bytes[end + 4..].to_vec());
        }
    }
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: &[u8]) -> Request {
    let request = read(&mut stream).await;
    stream.write_all(answer).await.unwrap();
    stream.shutdown().await.unwrap();
    request
}

/// A receiver that gives these answers, one after the other; returns its address and what it was sent.
async fn receiver(answers: Vec<Vec<u8>>) -> (String, JoinHandle<Vec<Request>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serving = async move {
        let mut requests = Vec::new();
        for answer in answers {
            requests.push(serve(listener.accept().await.unwrap().0, &answer).await);
        }
        requests
    };
    (address, spawned(serving))
}

#[expect(clippy::disallowed_methods, reason = "the test awaits it")]
fn spawned<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(task)
}

fn exporter(variables: &[(&str, &str)]) -> Exporter {
    let read = |name: &str| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
    };
    let settings = Settings::from_env(read).unwrap().unwrap();
    let own = [("service.name", "vae"), ("service.version", "0.1.0")];
    let own = own.map(|(key, value)| (key.to_owned(), value.to_owned()));
    Exporter::new(&settings, own.into()).unwrap()
}

#[tokio::test]
async fn message_arrives_with_its_headers() {
    let (address, requests) = receiver(vec![ok()]).await;
    let endpoint = format!("http://{address}/base");
    let exporter = exporter(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
        ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret%20word"),
        ("OTEL_SERVICE_NAME", "mine"),
    ]);
    exporter.export(TEXT, TIMES).await.unwrap();
    let (head, body) = requests.await.unwrap().remove(0);
    assert!(head.starts_with("post /base/v1/metrics http/1.1\r\n"), "{head}");
    for line in [
        format!("host: {address}"),
        "content-type: application/x-protobuf".to_owned(),
        "api-key: secret word".to_owned(),
    ] {
        assert!(head.lines().any(|known| known == line), "{line} is not in {head}");
    }
    let message = ExportMetricsServiceRequest::decode(&body[..]).unwrap();
    let resource = message.resource_metrics[0].resource.clone().unwrap();
    let names: Vec<_> = resource
        .attributes
        .iter()
        .map(|one| (one.key.as_str(), one.value.as_ref().unwrap().string_value.as_str()))
        .collect();
    assert_eq!(names, [("service.name", "mine"), ("service.version", "0.1.0")]);
    assert_eq!(message.resource_metrics[0].scope_metrics[0].metrics[0].name, "paceline_loss");
    assert!(!format!("{exporter:?}").contains("secret"));
}

#[tokio::test]
async fn json_is_sent_where_it_is_asked_for() {
    let (address, requests) = receiver(vec![ok()]).await;
    let endpoint = format!("http://{address}/own");
    let exporter = exporter(&[
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", &endpoint),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
    ]);
    exporter.export(TEXT, TIMES).await.unwrap();
    let (head, body) = requests.await.unwrap().remove(0);
    assert!(head.starts_with("post /own http/1.1\r\n") && head.contains("application/json"));
    let json: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let metric = &json["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0];
    assert_eq!(metric["gauge"]["dataPoints"][0]["asDouble"], 118.5);
}

#[tokio::test]
async fn busy_receiver_is_asked_again() {
    let busy = answer("503 Service Unavailable", "retry-after: 1\r\n", b"");
    let (address, requests) = receiver(vec![busy, ok()]).await;
    let endpoint = format!("http://{address}");
    exporter(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)]).export(TEXT, TIMES).await.unwrap();
    let requests = requests.await.unwrap();
    assert_eq!(requests[0].1, requests[1].1);
}

#[tokio::test]
async fn refusal_is_an_error_at_once_with_the_words_of_the_receiver() {
    let mut status = vec![0x12, 9];
    status.extend(b"no\nmetric");
    let (address, requests) = receiver(vec![answer("400 Bad Request", "", &status)]).await;
    let endpoint = format!("http://{address}");
    let exporter = exporter(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)]);
    let error = exporter.export(TEXT, TIMES).await.unwrap_err();
    assert_eq!(error.to_string(), "the receiver answered 400: no metric");
    assert_eq!(requests.await.unwrap().len(), 1);
}

#[tokio::test]
async fn values_that_were_refused_are_an_error() {
    let partial = PartialSuccess { rejected_data_points: 2, error_message: "too old".to_owned() };
    let body = ExportMetricsServiceResponse { partial_success: Some(partial) }.encode_to_vec();
    let json = br#"{"partialSuccess":{"rejectedDataPoints":"2","errorMessage":"too old"}}"#;
    for (protocol, body) in [("http/protobuf", &body[..]), ("http/json", json)] {
        let (address, _) = receiver(vec![answer("200 OK", "", body)]).await;
        let endpoint = format!("http://{address}");
        let exporter = exporter(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol),
        ]);
        let error = exporter.export(TEXT, TIMES).await.unwrap_err();
        assert_eq!(error.to_string(), "the receiver refused 2 values: too old");
    }
}

/// Time stands still but for timers, so the hour of a slow machine does not count.
#[tokio::test(start_paused = true)]
async fn receiver_that_hangs_is_given_up_after_the_timeouts() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let exporter = exporter(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "2000"),
    ]);
    let began = tokio::time::Instant::now();
    let error = exporter.export(TEXT, TIMES).await.unwrap_err();
    assert_eq!(error.to_string(), "timed out after 2s");
    assert_eq!(began.elapsed().as_secs(), 2 + 1 + 2 + 4 + 2);
}

#[tokio::test]
async fn answer_without_an_end_is_cut_off() {
    let endless = answer("200 OK", "", &vec![b'x'; 10 * 1024 * 1024]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let serving = spawned(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read(&mut stream).await;
        // The client closes before the end.
        stream.write_all(&endless).await.is_err()
    });
    exporter(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)]).export(TEXT, TIMES).await.unwrap();
    assert!(serving.await.unwrap());
}

/// A certificate for `localhost` that vouches for itself, in a file, and a server with it.
fn tls(folder: &Path) -> (String, TlsAcceptor) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let path = folder.join("ca.pem");
    std::fs::write(&path, made.cert.pem()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(made.signing_key.serialize_pem().as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    (path.to_string_lossy().into_owned(), TlsAcceptor::from(Arc::new(config)))
}

#[tokio::test]
async fn https_receiver_is_verified_by_the_given_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let (trusted, acceptor) = tls(folder.path());
    let other = tempfile::tempdir().unwrap();
    let (foreign, _) = tls(other.path());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let serving = spawned(async move {
        let mut requests = 0;
        while requests == 0 {
            let (stream, _) = listener.accept().await.unwrap();
            if let Ok(stream) = acceptor.accept(stream).await {
                serve(stream, &ok()).await;
                requests += 1;
            }
        }
        requests
    });
    let by = |certificate: &str| {
        exporter(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", certificate),
        ])
    };
    let message = message(TEXT, TIMES, &[]);
    let error = by(&foreign).attempt(&message).await.unwrap_err();
    assert!(error.starts_with("no TLS connection to localhost:"), "{error}");
    by(&trusted).export(TEXT, TIMES).await.unwrap();
    assert_eq!(serving.await.unwrap(), 1);
}

#[test]
fn missing_certificate_is_named_before_anything_is_sent() {
    let read = |name: &str| match name {
        "OTEL_EXPORTER_OTLP_ENDPOINT" => Some("https://localhost:1".into()),
        "OTEL_EXPORTER_OTLP_CERTIFICATE" => Some("/no/such.pem".into()),
        _ => None,
    };
    let settings = Settings::from_env(read).unwrap().unwrap();
    let error = Exporter::new(&settings, Vec::new()).unwrap_err().to_string();
    let expected = "cannot read OTEL_EXPORTER_OTLP_CERTIFICATE /no/such.pem: ";
    assert!(error.starts_with(expected), "{error}");
}
