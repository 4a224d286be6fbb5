//! As much of HTTP as fake servers need.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

/// An answer with a body.
pub(super) fn answer(status: u16, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// Reads a request: its head and its body.
pub(super) async fn request(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.parse().unwrap());
            let body = bytes.split_off(end + 4);
            if body.len() >= length {
                return Some((head, body));
            }
            bytes.extend(body);
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
