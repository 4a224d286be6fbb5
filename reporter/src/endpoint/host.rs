//! Keeps web pages from reading a loopback endpoint.
//!
//! A page may give its own host name the address 127.0.0.1 and so have a browser ask this endpoint
//! as if it were the page's own. Such a request names that host; nobody else has a reason to.

use std::net::{Ipv4Addr, Ipv6Addr};

use hyper::Request;
use hyper::header::HOST;
use hyper::http::uri::Authority;

/// Whether a request names this machine: by address, as `localhost` or, as only a program does that
/// is no browser, not at all.
pub(crate) fn is_local<B>(request: &Request<B>) -> bool {
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
        for host in ["localhost", "LocalHost:7223", "127.0.0.1:7223", "10.0.0.7", "[::1]:7223"] {
            assert!(local(host), "{host}");
        }
    }

    #[test]
    fn any_other_name_is_not() {
        for host in ["evil.example", "localhost.evil.example:7223", "127.0.0.1.evil.example", ""] {
            assert!(!local(host), "{host}");
        }
    }

    #[test]
    fn a_request_without_a_host_is_local_and_one_with_two_needs_both_to_be() {
        assert!(is_local(&Request::get("/").body(()).unwrap()));
        let both = Request::get("/").header(HOST, "localhost").header(HOST, "evil.example");
        assert!(!is_local(&both.body(()).unwrap()));
        assert!(!is_local(&Request::get("http://evil.example/").body(()).unwrap()));
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
