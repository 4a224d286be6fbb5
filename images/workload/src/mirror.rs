//! Fetching MNIST's files from a web server.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use ureq::tls::{RootCerts, TlsConfig};

use crate::files;

/// The servers of MNIST: the two that PyTorch's own loader asks.
pub(crate) const MIRRORS: [&str; 2] = [
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "https://storage.googleapis.com/cvdf-datasets/mnist",
];
/// A file that a mirror serves, and its MD5 checksum.
pub(crate) type Published = (&'static str, &'static str);
/// MNIST's files as they are served, compressed, with the checksums that PyTorch's loader expects.
pub(crate) const MNIST: [Published; 4] = [
    ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
    ("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
    ("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
    ("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
];

/// The longest wait for a connection: there are other servers.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest silence of a server, once reached.
const READ_TIMEOUT: Duration = Duration::from_secs(20);
/// The largest file that is accepted, in bytes: six times the largest of MNIST's.
const MAX_BYTES: u64 = 64 << 20;

/// The reason why a mirror could not be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MirrorError {
    /// The server cannot be reached, or does not have the file.
    #[error("{url}: {cause}")]
    Http { url: String, cause: Box<ureq::Error> },
    /// The file did not arrive, or could not be written.
    #[error("{url}: {cause}")]
    Io { url: String, cause: io::Error },
    /// The file has another checksum.
    #[error("{url} has the checksum {got}, expected {want}")]
    Checksum { url: String, got: String, want: &'static str },
}

/// Fetches files into a folder.
pub(crate) fn fetch(mirror: &str, files: &[Published], into: &Path) -> Result<(), MirrorError> {
    // The machine's own certificates: they may include those of a company's proxy.
    let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
    let agent = ureq::Agent::config_builder()
        .tls_config(tls)
        .timeout_resolve(Some(CONNECT_TIMEOUT))
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_recv_response(Some(READ_TIMEOUT))
        .timeout_per_read(Some(READ_TIMEOUT))
        .build()
        .new_agent();
    files.iter().try_for_each(|file| fetch_one(&agent, mirror, *file, into))
}

fn fetch_one(
    agent: &ureq::Agent,
    mirror: &str,
    (name, want): Published,
    into: &Path,
) -> Result<(), MirrorError> {
    let url = format!("{mirror}/{name}");
    let http = |cause| MirrorError::Http { url: url.clone(), cause: Box::new(cause) };
    let io = |cause| MirrorError::Io { url: url.clone(), cause };
    let body = agent.get(&url).call().map_err(http)?.into_body();
    // Drawn on standard error, if that is a terminal.
    let bar = ProgressBar::new(body.content_length().unwrap_or(0)).with_message(name);
    let style = "{msg} {wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}";
    bar.set_style(ProgressStyle::with_template(style).expect("a fixed template"));
    let mut data = Vec::new();
    let body = body.into_with_config().limit(MAX_BYTES).reader();
    bar.wrap_read(body).read_to_end(&mut data).map_err(io)?;
    bar.finish_and_clear();
    let got = files::md5(&data);
    if got != want {
        return Err(MirrorError::Checksum { url, got, want });
    }
    fs::write(into.join(name), data).map_err(io)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::thread::{self, JoinHandle};

    use super::*;

    const LABELS: Published = ("t10k-labels-idx1-ubyte.gz", "900150983cd24fb0d6963f7d28e17f72");

    /// A server that gives one answer to one request; the handle gives the request's first line.
    fn server(answer: &'static str) -> (String, JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mirror = format!("http://{}/mnist", listener.local_addr().unwrap());
        let thread = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let head: Vec<_> =
                lines.map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
            stream.write_all(answer.as_bytes()).unwrap();
            head[0].clone()
        });
        (mirror, thread)
    }

    fn refusal(answer: &'static str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let (mirror, server) = server(answer);
        let error = fetch(&mirror, &[LABELS], folder.path()).unwrap_err().to_string();
        server.join().unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        error
    }

    #[test]
    fn file_with_right_checksum_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (mirror, server) = server("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc");
        fetch(&mirror, &[LABELS], folder.path()).unwrap();
        assert_eq!(server.join().unwrap(), "GET /mnist/t10k-labels-idx1-ubyte.gz HTTP/1.1");
        assert_eq!(fs::read(folder.path().join(LABELS.0)).unwrap(), b"abc");
    }

    #[test]
    fn file_with_wrong_checksum_is_refused() {
        let error = refusal("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabd");
        let wrong = "has the checksum 4911e516e5aa21d327512e0c8b197616, expected 900150983cd24fb0";
        assert!(error.contains(wrong), "{error}");
    }

    #[test]
    fn missing_or_truncated_file_is_refused() {
        let error = refusal("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
        assert!(error.ends_with("t10k-labels-idx1-ubyte.gz: http status: 404"), "{error}");
        refusal("HTTP/1.1 200 OK\r\ncontent-length: 30\r\n\r\nabc");
    }

    #[test]
    fn unreachable_server_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mirror = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let folder = tempfile::tempdir().unwrap();
        assert!(fetch(&mirror, &[LABELS], folder.path()).is_err());
    }
}
