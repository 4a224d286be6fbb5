//! The secret that those show to each other who talk over a network.

use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use subtle::ConstantTimeEq;

use crate::exit::BadUsage;

/// A token has at least so many characters: enough that nobody guesses it.
const SHORTEST: usize = 16;

/// A secret, which is never printed.
#[derive(Clone)]
pub(crate) struct Token(String);

impl Token {
    /// Reads the token from the file of a setting; space around it does not count.
    pub(crate) fn read(setting: &str, path: &Path) -> Result<Self, BadUsage> {
        let wrong = |why: &str| BadUsage::file(setting, path, why);
        let failed = |error: std::io::Error| wrong(&error.to_string());
        let mode = std::fs::metadata(path).map_err(failed)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(wrong(&format!(
                "others than its owner may read it (mode {:03o}); allowed is 600 or less",
                mode & 0o777
            )));
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let token = text.trim();
        if token.len() < SHORTEST || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong(&format!(
                "a token is one word of at least {SHORTEST} printable ASCII characters"
            )));
        }
        Ok(Self(token.to_owned()))
    }

    /// Whether a request shows it: as a bearer's, or as the password of any user, which is what a
    /// browser can ask for.
    pub(crate) fn is_shown(&self, headers: &HeaderMap) -> bool {
        let Some(shown) = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()) else {
            return false;
        };
        let Some((scheme, rest)) = shown.split_once(' ') else { return false };
        if scheme.eq_ignore_ascii_case("bearer") {
            return self.is(rest.trim().as_bytes());
        }
        let decoded = STANDARD.decode(rest.trim()).ok();
        let pair = decoded.as_deref().filter(|_| scheme.eq_ignore_ascii_case("basic"));
        let colon = pair.and_then(|pair| pair.iter().position(|byte| *byte == b':'));
        pair.zip(colon)
            .and_then(|(pair, colon)| pair.get(colon + 1..))
            .is_some_and(|password| self.is(password))
    }

    /// What shows it in a request.
    pub(crate) fn bearer(&self) -> HeaderValue {
        let mut value = HeaderValue::try_from(format!("Bearer {}", self.0))
            .expect("a token is made of printable ASCII characters");
        value.set_sensitive(true);
        value
    }

    /// Takes as long whatever is right about what is shown.
    fn is(&self, shown: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(shown).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdef";

    fn read(text: &str, mode: u32) -> Result<Token, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        Token::read("token_file", &path).map_err(|error| error.to_string())
    }

    fn shows(header: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_str(header).unwrap());
        read(&format!("{SECRET}\n"), 0o600).unwrap().is_shown(&headers)
    }

    #[test]
    fn a_token_is_shown_as_a_bearers_or_as_a_password() {
        assert!(shows(&format!("Bearer {SECRET}")));
        assert!(shows(&format!("Basic {}", STANDARD.encode(format!("me:{SECRET}")))));
    }

    #[test]
    fn anything_else_that_is_shown_is_not_the_token() {
        for header in ["", "Bearer", "Bearer ", "Bearer 0123456789abcdeg", "Basic ????", SECRET] {
            assert!(!shows(header), "{header}");
        }
        assert!(!shows(&format!("Basic {}", STANDARD.encode(SECRET))));
        assert!(!shows(&format!("Basic {}", STANDARD.encode(format!("{SECRET}:")))));
        assert!(!read(SECRET, 0o600).unwrap().is_shown(&HeaderMap::new()));
    }

    #[test]
    fn a_token_that_others_may_read_or_that_is_short_is_refused() {
        assert!(read(SECRET, 0o644).unwrap_err().contains("mode 644"));
        assert!(read("0123", 0o600).unwrap_err().contains("at least 16"));
        assert!(read("", 0o600).is_err() && read("0123456789 abcdef", 0o600).is_err());
    }

    #[test]
    fn what_is_shown_of_a_token_is_taken_for_it() {
        let token = read(SECRET, 0o600).unwrap();
        let shown = HeaderMap::from_iter([(AUTHORIZATION, token.bearer())]);
        assert!(token.is_shown(&shown) && !format!("{shown:?}").contains(SECRET));
    }

    #[test]
    fn a_token_is_not_printed() {
        assert!(!format!("{:?}", read(SECRET, 0o600)).contains(SECRET));
    }
}
