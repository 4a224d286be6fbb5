//! The address of a job's endpoint, as users write it.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// The default host of endpoints.
const HOST: &str = "127.0.0.1";

/// Where an endpoint is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Address {
    /// `host:port`; the host may be a name.
    Tcp(String),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl Address {
    /// A port of 127.0.0.1.
    pub fn local(port: u16) -> Self {
        Self::Tcp(format!("{HOST}:{port}"))
    }

    /// A name of the address that may stand in the path of a URL: the port for a port of 127.0.0.1. Two
    /// addresses never have the same.
    pub fn key(&self) -> String {
        let text = self.to_string();
        if let Some(port) = text.strip_prefix(HOST).and_then(|rest| rest.strip_prefix(':')) {
            return port.to_owned();
        }
        text.bytes().fold(String::with_capacity(2 * text.len()), |mut key, byte| {
            if byte.is_ascii_alphanumeric() || byte == b'-' {
                key.push(char::from(byte));
            } else {
                key.push('_');
                key.extend(
                    [byte >> 4, byte & 15]
                        .map(|half| char::from_digit(half.into(), 16))
                        .into_iter()
                        .flatten(),
                );
            }
            key
        })
    }

    /// Where a browser finds the page; `None` for a Unix socket, which no browser opens.
    pub fn page(&self) -> Option<String> {
        match self {
            Self::Tcp(address) => Some(format!("http://{address}/")),
            Self::Unix(_) => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => f.write_str(address),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The text is not an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a port, host:port, the address of a page or unix:/path.sock, for example 7223 or \
     http://127.0.0.1:7223/"
)]
pub struct InvalidAddress;

/// Takes what a job prints at its start, what `PACELINE_LISTEN` takes, and a port alone.
impl FromStr for Address {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let text = text.trim();
        let path = text.strip_prefix("unix:").unwrap_or(text);
        if path.starts_with('/') {
            let is_file = !path.ends_with('/') && !path.contains('\0');
            return if is_file { Ok(Self::Unix(path.into())) } else { Err(InvalidAddress) };
        }
        let text = text.strip_prefix("http://").unwrap_or(text);
        let text = text.strip_suffix('/').unwrap_or(text);
        if is_port(text) {
            return Ok(Self::Tcp(format!("{HOST}:{text}")));
        }
        let (host, port) = text.rsplit_once(':').ok_or(InvalidAddress)?;
        let is_host = if host.starts_with('[') {
            text.parse::<SocketAddr>().is_ok()
        } else {
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            !host.is_empty() && host.bytes().all(is_allowed)
        };
        if is_host && is_port(port) { Ok(Self::Tcp(text.to_owned())) } else { Err(InvalidAddress) }
    }
}

/// Whether a text is a port that can be connected to.
fn is_port(text: &str) -> bool {
    let has_digits = text.bytes().all(|digit| digit.is_ascii_digit());
    has_digits && text.parse::<u16>().is_ok_and(|port| port > 0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_job_prints_and_a_port_are_addresses() {
        for (text, address) in [
            ("7223", "127.0.0.1:7223"),
            (" http://127.0.0.1:7223/ ", "127.0.0.1:7223"),
            ("localhost:80", "localhost:80"),
            ("[::1]:7223", "[::1]:7223"),
            ("unix:/run/a b.sock", "unix:/run/a b.sock"),
            ("/run/job.sock", "unix:/run/job.sock"),
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), address);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "x",
            "0",
            "65536",
            ":7223",
            "a:",
            "a:+1",
            "a:0",
            "::1:80",
            "[x]:1",
            "a b:1",
            "unix:",
            "unix:run",
            "/run/",
            "https://a:1",
            "http://a:1/x",
            "a@b:1",
            "http://",
        ] {
            assert_eq!(text.parse::<Address>(), Err(InvalidAddress), "{text:?}");
        }
    }

    #[test]
    fn keys_differ_and_fit_into_a_url() {
        let texts =
            ["7223", "localhost:7223", "[::1]:7223", "/a/b", "/a_2fb", "/ä", "/a b", "/a-b"];
        let keys: BTreeSet<_> =
            texts.iter().map(|text| text.parse::<Address>().unwrap().key()).collect();
        assert_eq!(keys.len(), texts.len(), "{keys:?}");
        assert!(keys.contains("7223"), "{keys:?}");
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        assert!(keys.iter().all(|key| key.chars().all(is_plain)), "{keys:?}");
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_without_panic(text in any::<String>()) {
            if let Ok(address) = text.parse::<Address>() {
                prop_assert_eq!(address.to_string().parse(), Ok(address.clone()));
                prop_assert!(!address.key().is_empty());
            }
        }
    }
}
