//! The address that a reporter listens on, as users write it.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// The allowed forms of an address.
pub(crate) const ALLOWED: &str =
    "`host:port`, such as `127.0.0.1:7223`, or `unix:/path.sock` with an absolute path";

/// A requested address, as `PACELINE_LISTEN` takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// `host:port`; the host may be a name.
    Tcp(String),
    /// A Unix socket's path.
    Unix(PathBuf),
}

/// The text is neither of the two forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {ALLOWED}")]
pub struct InvalidAddress;

impl FromStr for Address {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        if let Some(path) = text.strip_prefix("unix:") {
            let absolute = path.starts_with('/') && !path.ends_with('/') && !path.contains('\0');
            return if absolute { Ok(Self::Unix(path.into())) } else { Err(InvalidAddress) };
        }
        let (host, port) = text.rsplit_once(':').ok_or(InvalidAddress)?;
        let bracketed = host.starts_with('[') && host.ends_with(']');
        let plain = !host.contains([':', '/', '[', ']']) && !host.contains(char::is_whitespace);
        let known = if bracketed { text.parse::<SocketAddr>().is_ok() } else { plain };
        let digits = port.bytes().all(|digit| digit.is_ascii_digit());
        if known && !host.is_empty() && digits && port.parse::<u16>().is_ok() {
            Ok(Self::Tcp(text.to_owned()))
        } else {
            Err(InvalidAddress)
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

/// The address that a reporter does listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LocalAddr {
    /// An IP address and a port.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl LocalAddr {
    /// Where a browser on this machine finds the page; `None` for a Unix socket, which no browser opens.
    pub fn page_url(&self) -> Option<String> {
        let Self::Tcp(mut address) = self.clone() else { return None };
        if address.ip().is_unspecified() {
            address.set_ip(if address.is_ipv4() {
                Ipv4Addr::LOCALHOST.into()
            } else {
                Ipv6Addr::LOCALHOST.into()
            });
        }
        let path = if cfg!(feature = "page") { "" } else { "v1/progress" };
        Some(format!("http://{address}/{path}"))
    }
}

/// As `PACELINE_LISTEN` takes it: `127.0.0.1:7223` or `unix:/path.sock`.
impl fmt::Display for LocalAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hosts_with_a_port_and_absolute_socket_paths_are_addresses() {
        for text in ["127.0.0.1:7223", "localhost:0", "[::1]:7223", "0.0.0.0:65535"] {
            assert_eq!(text.parse(), Ok(Address::Tcp(text.to_owned())));
        }
        assert_eq!("unix:/run/a b.sock".parse(), Ok(Address::Unix("/run/a b.sock".into())));
    }

    #[test]
    fn invalid_addresses_are_refused() {
        for text in [
            "",
            "7223",
            ":7223",
            "localhost",
            "localhost:",
            "localhost:+1",
            "localhost:65536",
            "::1:7223",
            "[::1]",
            "[x]:1",
            "http://localhost:1",
            "a b:1",
            "unix:",
            "unix:run.sock",
            "unix:/run/",
            "unix:/a\0b",
        ] {
            assert_eq!(text.parse::<Address>(), Err(InvalidAddress), "{text:?}");
        }
    }

    #[test]
    fn page_of_a_port_has_an_address_for_a_browser() {
        for (address, url) in [
            ("127.0.0.1:7223", "http://127.0.0.1:7223/"),
            ("0.0.0.0:7230", "http://127.0.0.1:7230/"),
            ("[::]:80", "http://[::1]:80/"),
            ("10.0.0.7:7223", "http://10.0.0.7:7223/"),
        ] {
            let url =
                if cfg!(feature = "page") { url.to_owned() } else { format!("{url}v1/progress") };
            assert_eq!(LocalAddr::Tcp(address.parse().unwrap()).page_url(), Some(url));
        }
        assert_eq!(LocalAddr::Unix("/run/job.sock".into()).page_url(), None);
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_without_panic(text in any::<String>()) {
            if let Ok(address) = text.parse::<Address>() {
                prop_assert_eq!(address.to_string(), text);
            }
        }

        #[test]
        fn every_socket_address_is_an_address(address in any::<SocketAddr>()) {
            // Users cannot write a scope id.
            let address = SocketAddr::new(address.ip(), address.port()).to_string();
            prop_assert_eq!(address.parse(), Ok(Address::Tcp(address)));
        }
    }
}
