//! The page of the job, which is compiled into the program. `page/index.html` is all of it, so that the
//! browser asks for nothing else.

use hyper::{Response, StatusCode};

use crate::endpoint::body::Answer;
use crate::endpoint::routes::{respond, set};

const HTML: &str = "text/html; charset=utf-8";
const PAGE: &str = include_str!("page/index.html");

/// The page may load nothing but this endpoint's JSON. Text can never become a script or an element.
/// Only pages of this machine may embed it: a notebook does. The page has nothing that a click could
/// change, and who embeds it cannot read it.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors http://127.0.0.1:* http://localhost:* https://127.0.0.1:* \
                      https://localhost:*; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

/// Headers of the page.
const HEADERS: [(&str, &str); 5] = [
    ("content-security-policy", POLICY),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
];

/// The answer with the page.
pub(super) fn answer() -> Response<Answer> {
    let mut response = respond(StatusCode::OK, HTML, PAGE);
    for (name, value) in HEADERS {
        set(&mut response, name, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::PAGE;

    /// With the code that keeps the past, some 10 KiB, a job's binary grows by at most 40 KiB.
    const MAX_BYTES: usize = 29 * 1024;

    #[test]
    fn page_is_small_and_loads_nothing_from_elsewhere() {
        assert!(PAGE.len() < MAX_BYTES, "{} bytes", PAGE.len());
        let own = PAGE.replace("http://www.w3.org/2000/svg", "");
        for way in ["://", " src=", "<link rel=\"stylesheet", "import(", "@import"] {
            assert!(!own.contains(way), "the page has {way}");
        }
    }

    #[test]
    fn text_of_jobs_is_never_markup() {
        for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            assert!(!PAGE.contains(way), "the page uses {way}");
        }
    }
}
