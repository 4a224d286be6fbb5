//! The address of the page, as users write it.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use serde::Deserialize;

/// The default address.
const DEFAULT: &str = "127.0.0.1:7224";

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(
        with = "String",
        description = "An address to listen on: `host:port`, `unix:/path.sock` or `none`.",
        extend(
            "pattern" = "^(none|unix:/.*[^/]|.+:[0-9]{1,5})$",
            "examples" = [DEFAULT, "unix:/run/paceline/page.sock", "none"]
        )
    )
)]
pub enum Address {
    /// Nowhere.
    None,
    /// `host:port`; the host may be a name.
    Tcp(String),
    /// A Unix socket's path.
    Unix(PathBuf),
}

/// An invalid address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid listen {0:?}: expected `host:port`, `unix:/path.sock` with an absolute path, or \
     `none`, for example `{DEFAULT}`"
)]
pub struct NoAddress(String);

impl Default for Address {
    fn default() -> Self {
        Self::Tcp(DEFAULT.to_owned())
    }
}

impl FromStr for Address {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Self, NoAddress> {
        let wrong = || NoAddress(text.to_owned());
        if text == "none" {
            return Ok(Self::None);
        }
        if let Some(path) = text.strip_prefix("unix:") {
            let usable = path.starts_with('/') && !path.ends_with('/') && !path.contains('\0');
            return if usable { Ok(Self::Unix(path.into())) } else { Err(wrong()) };
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let strange = |c: char| c.is_whitespace() || c.is_control() || "[]/:".contains(c);
        let named = !host.is_empty() && !host.contains(strange);
        let number =
            port.bytes().all(|digit| digit.is_ascii_digit()) && port.parse::<u16>().is_ok();
        if text.parse::<SocketAddr>().is_ok() || (named && number) {
            Ok(Self::Tcp(text.to_owned()))
        } else {
            Err(wrong())
        }
    }
}

impl TryFrom<String> for Address {
    type Error = NoAddress;

    fn try_from(text: String) -> Result<Self, NoAddress> {
        text.parse()
    }
}

impl Address {
    /// The address as a link for a browser or `curl`, if it can be one.
    pub(super) fn link(&self, tls: bool) -> String {
        match self {
            Self::Tcp(address) => format!("{}://{address}/", if tls { "https" } else { "http" }),
            Self::None | Self::Unix(_) => self.to_string(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Tcp(address) => f.write_str(address),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn host_with_port_socket_path_and_none_are_valid() {
        for text in ["127.0.0.1:7224", "localhost:0", "[::1]:7224", "unix:/run/a b.sock", "none"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn invalid_address_is_refused_with_allowed_forms() {
        for text in ["", "7224", ":7224", "a:", "a:+1", "a:65536", "::1:7", "http://a:1", "unix:x"]
        {
            let said = text.parse::<Address>().unwrap_err().to_string();
            assert!(said.contains(&format!("{text:?}")) && said.contains("host:port"), "{said}");
        }
    }

    proptest! {
        #[test]
        fn parsing_any_text_never_panics(text in any::<String>()) {
            if let Ok(address) = text.parse::<Address>() {
                prop_assert_eq!(address.to_string(), text);
            }
        }
    }
}
