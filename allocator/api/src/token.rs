//! The secret that authenticates requests over a network.

use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use subtle::ConstantTimeEq;

use crate::bounded;
use crate::usage::BadUsage;

/// The fewest characters of a token: enough that it cannot be guessed.
const MIN_LEN: usize = 16;

/// Refuses the file of a secret, which `setting` names, if its mode has any of the bits `others`.
pub fn refuse_readable(setting: &str, path: &Path, others: u32) -> Result<(), BadUsage> {
    let wrong = |why: &dyn fmt::Display| BadUsage::file(setting, path, why);
    let mode = std::fs::metadata(path).map_err(|error| wrong(&error))?.permissions().mode();
    if mode & others == 0 {
        return Ok(());
    }
    let mode = mode & 0o777;
    Err(wrong(&format!("other users may read it (mode {mode:03o}); run chmod 600")))
}

/// A secret, which is never printed.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Reads the token from the file that `setting` names; white space around it is ignored.
    pub fn read(setting: &str, path: &Path) -> Result<Self, BadUsage> {
        let wrong = |why: &str| BadUsage::file(setting, path, why);
        let failed = |error: std::io::Error| wrong(&error.to_string());
        refuse_readable(setting, path, 0o077)?;
        let text = bounded::TOKEN.read(path).map_err(failed)?;
        let token = text.trim();
        if token.len() < MIN_LEN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong(&format!(
                "invalid token: expected one word of at least {MIN_LEN} printable ASCII characters"
            )));
        }
        Ok(Self(token.to_owned()))
    }

    /// Whether a request carries the token: as a bearer token, or as the password of any user,
    /// which a browser can ask for.
    pub fn is_shown(&self, headers: &HeaderMap) -> bool {
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

    /// The value of the header `Authorization` that carries the token.
    ///
    /// # Panics
    ///
    /// Never: a token is made of printable ASCII characters.
    pub fn bearer(&self) -> HeaderValue {
        let mut value = HeaderValue::try_from(format!("Bearer {}", self.0))
            .expect("a token is made of printable ASCII characters");
        value.set_sensitive(true);
        value
    }

    /// Compares in constant time.
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
    fn token_is_accepted_as_bearer_or_as_password() {
        assert!(shows(&format!("Bearer {SECRET}")));
        assert!(shows(&format!("Basic {}", STANDARD.encode(format!("me:{SECRET}")))));
    }

    #[test]
    fn any_other_credentials_are_refused() {
        for header in ["", "Bearer", "Bearer ", "Bearer 0123456789abcdeg", "Basic ????", SECRET] {
            assert!(!shows(header), "{header}");
        }
        assert!(!shows(&format!("Basic {}", STANDARD.encode(SECRET))));
        assert!(!shows(&format!("Basic {}", STANDARD.encode(format!("{SECRET}:")))));
        assert!(!read(SECRET, 0o600).unwrap().is_shown(&HeaderMap::new()));
    }

    #[test]
    fn token_that_is_short_or_readable_by_others_is_refused() {
        assert!(read(SECRET, 0o644).unwrap_err().contains("mode 644"));
        assert!(read("0123", 0o600).unwrap_err().contains("at least 16"));
        assert!(read("", 0o600).is_err() && read("0123456789 abcdef", 0o600).is_err());
    }

    #[test]
    fn bearer_header_of_a_token_is_accepted() {
        let token = read(SECRET, 0o600).unwrap();
        let shown = HeaderMap::from_iter([(AUTHORIZATION, token.bearer())]);
        assert!(token.is_shown(&shown) && !format!("{shown:?}").contains(SECRET));
    }

    #[test]
    fn token_is_never_printed() {
        assert!(!format!("{:?}", read(SECRET, 0o600)).contains(SECRET));
    }
}
