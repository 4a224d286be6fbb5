//! A server that other machines can reach.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::client::{Served, ask};
use crate::web::Settings;

const SECRET: &str = "0123456789abcdef";

/// Settings with a self-signed certificate for `localhost`, and a connector that trusts it.
fn settings(folder: &Path) -> (Settings, TlsConnector) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        Some(path)
    };
    let settings = Settings {
        otlp: false,
        listen: Some("0.0.0.0:0".parse().unwrap()),
        token_file: file("token", SECRET),
        tls_certificate: file("certificate.pem", &made.cert.pem()),
        tls_key: file("key.pem", &made.signing_key.serialize_pem()),
    };
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (settings, TlsConnector::from(Arc::new(config)))
}

#[tokio::test]
async fn key_that_every_user_may_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (settings, _) = settings(folder.path());
    let key = settings.tls_key.clone().unwrap();
    let with_mode = |mode| {
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
        crate::web::tls::config(settings.tls_certificate.as_ref().unwrap(), &key)
    };
    let refused = with_mode(0o644).unwrap_err().to_string();
    assert!(refused.contains("tls_key") && refused.contains("mode 644"), "{refused}");
    assert!(with_mode(0o640).is_ok());
}

#[tokio::test]
async fn tls_clients_need_the_token() {
    let folder = tempfile::tempdir().unwrap();
    let (settings, connector) = settings(folder.path());
    let served = Served::with(settings).await;
    let asked = async |path: &str, header: String| {
        let name = ServerName::try_from("localhost").unwrap();
        let stream = connector.connect(name, served.connect().await).await.unwrap();
        ask(stream, &format!("GET {path}"), &format!("host: box.example\r\n{header}")).await
    };
    let shown = asked("/v1/status", format!("authorization: Bearer {SECRET}\r\n")).await;
    assert!(shown.starts_with("HTTP/1.1 200") && shown.contains("vae"), "{shown}");
    for path in ["/", "/v1/status", "/v1/events", "/metrics", "/v1/decisions?job=vae", "/nowhere"] {
        for header in ["", "authorization: Bearer wrong\r\n"] {
            let refused = asked(path, header.to_owned()).await;
            assert!(refused.starts_with("HTTP/1.1 401"), "{path}: {refused}");
            assert!(refused.contains("www-authenticate: Basic"), "{refused}");
        }
    }
    assert!(asked("/healthz", String::new()).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn plain_request_to_a_tls_server_gets_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let (settings, _) = settings(folder.path());
    let served = Served::with(settings).await;
    let mut stream = served.connect().await;
    tokio::io::AsyncWriteExt::write_all(&mut stream, b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    drop(tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut answer).await);
    assert!(!answer.starts_with(b"HTTP/"), "{answer:?}");
}
