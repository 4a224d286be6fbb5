//! Keeps other web pages from reading this endpoint through a user's browser.
//!
//! A page may resolve its own host name to 127.0.0.1 (DNS rebinding): the browser then sends its
//! requests here, with the page's host name. A page may also send plain cross-site requests. The
//! browser hides the answers from it, but a request may change something, and answering costs. So
//! these are refused as well.

use std::net::{Ipv4Addr, Ipv6Addr};

use hyper::Request;
use hyper::header::{HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::http::uri::{Authority, Uri};

/// Whether a request names this machine by address or as `localhost`, or names no host, which a
/// browser never does.
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

/// Whether a browser marks the request as one from another site's page, and not as a followed link. An older
/// browser only names the page's origin.
pub fn is_cross_site(headers: &HeaderMap) -> bool {
    if headers.get_all(ORIGIN).iter().any(|origin| !is_own(origin, headers)) {
        return true;
    }
    let says = |name: &str, values: &[&str]| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.is_some_and(|value| values.contains(&value))
    };
    says("sec-fetch-site", &["cross-site", "same-site"]) && !says("sec-fetch-mode", &["navigate"])
}

/// Whether a browser marks the request as one from another origin's page. A page of another port of
/// this machine is one, also where the request is a form that the user sends. Such a request must
/// change nothing. Clients that are not browsers send no such marks.
pub fn is_cross_origin(headers: &HeaderMap) -> bool {
    let is_asked = |origin: &HeaderValue| {
        authority(origin).is_some_and(|authority| is_host(&authority, headers))
    };
    let is_same = |site: &HeaderValue| site == "same-origin" || site == "none";
    !headers.get_all(ORIGIN).iter().all(is_asked)
        || !headers.get_all("sec-fetch-site").iter().all(is_same)
}

/// Whether the origin is a page of this machine, or of the host that is asked.
fn is_own(origin: &HeaderValue, headers: &HeaderMap) -> bool {
    authority(origin)
        .is_some_and(|authority| is_host(&authority, headers) || names_local(&authority))
}

fn authority(origin: &HeaderValue) -> Option<Authority> {
    origin.to_str().ok()?.parse::<Uri>().ok()?.into_parts().authority
}

/// Whether this is the host that is asked.
fn is_host(authority: &Authority, headers: &HeaderMap) -> bool {
    headers.get(HOST).is_some_and(|host| authority.as_str().as_bytes() == host)
}

#[cfg(test)]
mod tests {
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
    fn other_host_names_are_not_local() {
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
            is_cross_site(request.body(()).unwrap().headers())
        };
        assert!(asked("cross-site", "no-cors") && asked("same-site", "cors"));
        assert!(!asked("cross-site", "navigate") && !asked("same-origin", "cors"));
        assert!(!is_cross_site(&HeaderMap::new()));
    }

    #[test]
    fn page_of_another_origin_is_a_stranger() {
        let asked = |host: &str, origin: &str| {
            let request = Request::get("/").header(HOST, host).header(ORIGIN, origin);
            is_cross_site(request.body(()).unwrap().headers())
        };
        for origin in ["http://evil.example", "https://localhost.evil.example", "null", "", "x y"] {
            assert!(asked("localhost:7224", origin), "{origin}");
        }
        assert!(!asked("localhost:7224", "http://127.0.0.1:7224"));
        assert!(!asked("box.example:7224", "https://box.example:7224"));
    }

    #[test]
    fn only_a_page_of_the_same_origin_or_no_page_may_change() {
        let asked = |name: &str, value: &str| {
            let request = Request::post("/").header(HOST, "127.0.0.1:7223").header(name, value);
            !is_cross_origin(request.body(()).unwrap().headers())
        };
        for origin in ["http://evil.example", "http://127.0.0.1:8888", "http://10.0.0.7", "null"] {
            assert!(!asked("origin", origin), "{origin}");
        }
        assert!(asked("origin", "http://127.0.0.1:7223"));
        for (site, may) in
            [("cross-site", false), ("same-site", false), ("same-origin", true), ("none", true)]
        {
            assert_eq!(asked("sec-fetch-site", site), may, "{site}");
        }
        assert!(asked("user-agent", "curl/8.5.0"));
    }

    proptest! {
        #[test]
        fn any_host_header_is_parsed_without_panic(bytes in any::<Vec<u8>>()) {
            if let Ok(host) = HeaderValue::from_bytes(&bytes) {
                is_local(&Request::get("/").header(HOST, host).body(()).unwrap());
            }
        }
    }
}
