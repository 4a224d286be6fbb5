use std::net::Ipv4Addr;

use paceline_reporter::{LocalAddr, Reporter};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// What a server does after its first bytes.
#[derive(Clone, Copy)]
enum Then {
    Closes,
    Hangs,
    /// Sends its bytes without end.
    Repeats,
}

/// A server that answers everything with the same bytes, until the test's runtime ends.
#[expect(clippy::disallowed_methods, reason = "the test's runtime ends it")]
async fn server(bytes: &[u8], then: Then) -> Address {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let bytes = bytes.to_vec();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            drop(stream.read(&mut [0; 1024]).await);
            while stream.write_all(&bytes).await.is_ok() && matches!(then, Then::Repeats) {}
            if matches!(then, Then::Hangs) {
                open.push(stream);
            }
        }
    });
    Address::local(port)
}

fn with_body(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

pub(crate) fn address(reporter: &Reporter) -> Address {
    reporter.local_addr().unwrap().to_string().parse().unwrap()
}

#[tokio::test]
async fn progress_of_a_reporter_is_read_by_port_and_socket() {
    let folder = tempfile::tempdir().unwrap();
    let socket = format!("unix:{}", folder.path().join("vae.sock").display());
    for listen in ["127.0.0.1:0", &socket] {
        let reporter = Reporter::builder("vae").listen(listen).hide_address().start().unwrap();
        reporter.record(Some(0.5), None);
        let progress = progress(&address(&reporter)).await.unwrap();
        assert_eq!((progress.job.as_str(), progress.eval.count), ("vae", 1));
        let mut events = Events::open(&address(&reporter)).await.unwrap();
        assert_eq!(events.next().await.unwrap().unwrap().eval.count, 1);
        drop(reporter);
        while let Ok(Some(_)) = events.next().await {}
    }
}

#[tokio::test]
async fn history_of_a_reporter_is_read() {
    let reporter = Reporter::builder("vae").listen("127.0.0.1:0").hide_address().start().unwrap();
    reporter.record(Some(0.5), None);
    let address = address(&reporter);
    // The past gets a point some time after the report.
    let point = loop {
        let history = history(&address, "/v1/history").await.unwrap();
        if let Some(loss) = history.loss.first() {
            break *loss;
        }
    };
    assert_eq!(point, Some(0.5));
    assert!(matches!(reporter.local_addr(), Some(LocalAddr::Tcp(_))));
}

#[tokio::test]
async fn absent_endpoint_differs_from_a_foreign_server() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let free = Address::local(listener.local_addr().unwrap().port());
    drop(listener);
    for absent in [free, Address::Unix("/no/such.sock".into())] {
        assert!(matches!(progress(&absent).await, Err(Failure::Absent(_))), "{absent}");
    }
    for (bytes, said) in [
        (&b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"[..], "404"),
        (b"SSH-2.0-OpenSSH_9\r\n", ""),
        (b"", ""),
        (&with_body("[]"), ""),
        (&with_body("{\"schema\": 1}"), "missing field"),
        (&with_body(&"[".repeat(100_000)), "recursion"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 999999999999\r\n\r\n{", ""),
    ] {
        let answer = progress(&server(bytes, Then::Closes).await).await;
        let Err(Failure::Foreign(why)) = answer else { panic!("{said}: {answer:?}") };
        assert!(why.contains(said), "{why}");
    }
}

#[tokio::test]
async fn hanging_server_is_given_up() {
    for bytes in [&b""[..], b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{"] {
        let address = server(bytes, Then::Hangs).await;
        assert_eq!(progress(&address).await.unwrap_err(), Failure::Silent);
    }
}

#[tokio::test]
async fn endless_answers_are_cut() {
    let endless_head =
        b"HTTP/1.1 200 OK\r\nx: y\r\nx: y\r\nx: y\r\nx: y\r\nx: y\r\nx: y\r\nx: y\r\n";
    let endless_body = [b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), vec![b' '; 4096]].concat();
    for bytes in [&endless_head[..], &endless_body] {
        let address = server(bytes, Then::Repeats).await;
        // On a busy machine the time may be up before the bytes are too many.
        let failure = progress(&address).await.unwrap_err();
        assert!(matches!(failure, Failure::Foreign(_) | Failure::Silent), "{failure}");
    }
}

#[tokio::test]
async fn endless_event_ends_the_listening() {
    let bytes = [b"HTTP/1.1 200 OK\r\n\r\ndata: ".to_vec(), vec![b'x'; 4096]].concat();
    let mut events = Events::open(&server(&bytes, Then::Repeats).await).await.unwrap();
    assert!(matches!(events.next().await, Err(Failure::Foreign(_))));
}

#[tokio::test]
async fn text_of_a_job_is_cleaned() {
    let reporter =
        Reporter::builder("a\u{1b}[2Jb").listen("127.0.0.1:0").hide_address().start().unwrap();
    let progress = progress(&address(&reporter)).await.unwrap();
    assert_eq!(progress.job, "a\u{fffd}[2Jb");
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_a_clean_progress(bytes in any::<Vec<u8>>()) {
        prop_assert!(parse(&bytes).is_err());
    }
}
