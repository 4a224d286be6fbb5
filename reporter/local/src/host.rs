//! Keeps other pages from reading this one through the reader's own browser.
//!
//! A page may give its own host name the address 127.0.0.1, and its browser then asks here as if
//! that were the page's own. Such a request names the page's host. A page may also simply ask;
//! its browser lets it see nothing of the answer, yet the answer costs, so it gets none.

use std::net::{Ipv4Addr, Ipv6Addr};

use hyper::Request;
use hyper::header::{HOST, HeaderMap};
use hyper::http::uri::Authority;

/// Whether a request names this machine: by address, as `localhost` or, as only a program does that
/// is no browser, not at all.
pub fn is_local<B>(request: &Request<B>) -> bool {
    let in_headers = request.headers().get_all(HOST).iter().all(|host| {
        let parsed = host.to_str().ok().and_then(|host| host.parse().ok());
        parsed.as_ref().is_some_and(names_local)
    });
    in_headers && request.uri().authority().is_none_or(names_local)
}

fn names_local(authority: &Authority) -> bool {
    let host = authority.host();
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<Ipv4Addr>().is_ok()
        || inner.is_some_and(|host| host.parse::<Ipv6Addr>().is_ok())
}

/// Whether a browser says that another site's page asks, and not a person who follows a link.
pub fn is_strangers(headers: &HeaderMap) -> bool {
    let says = |name: &str, values: &[&str]| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.is_some_and(|value| values.contains(&value))
    };
    says("sec-fetch-site", &["cross-site", "same-site"]) && !says("sec-fetch-mode", &["navigate"])
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn local(host: &str) -> bool {
        is_local(&Request::get("/").header(HOST, host).body(()).unwrap())
    }

    #[test]
    fn addresses_and_localhost_are_local_with_and_without_a_port() {
        for host in ["localhost", "LocalHost:7224", "127.0.0.1:7224", "10.0.0.7", "[::1]:7224"] {
            assert!(local(host), "{host}");
        }
    }

    #[test]
    fn any_other_name_is_not() {
        for host in ["evil.example", "localhost.evil.example:7224", "127.0.0.1.evil.example", ""] {
            assert!(!local(host), "{host}");
        }
        let two = Request::get("/").header(HOST, "localhost").header(HOST, "evil.example");
        assert!(!is_local(&two.body(()).unwrap()));
        assert!(!is_local(&Request::get("http://evil.example/").body(()).unwrap()));
    }

    #[test]
    fn another_sites_page_is_a_stranger_and_a_followed_link_is_not() {
        let asked = |site: &str, mode: &str| {
            let request =
                Request::get("/").header("sec-fetch-site", site).header("sec-fetch-mode", mode);
            is_strangers(request.body(()).unwrap().headers())
        };
        assert!(asked("cross-site", "no-cors") && asked("same-site", "cors"));
        assert!(!asked("cross-site", "navigate") && !asked("same-origin", "cors"));
        assert!(!is_strangers(&HeaderMap::new()));
    }

    proptest! {
        #[test]
        fn no_host_is_too_strange_to_judge(bytes in any::<Vec<u8>>()) {
            if let Ok(host) = HeaderValue::from_bytes(&bytes) {
                is_local(&Request::get("/").header(HOST, host).body(()).unwrap());
            }
        }
    }
}
