//! One line of the log: a link of the chain.
//!
//! A line's hash is the SHA-256 of its own text without the member `hash`. The text holds `prev`,
//! the hash of the line before, so that every hash covers all lines before it. A check hashes the
//! bytes in the file: nothing is serialised again to be compared.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Entry;

/// A line's hash, in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(
        rename = "Hash",
        description = "A hash: 64 hexadecimal digits in lower case.",
        extend("pattern" = "^[0-9a-f]{64}$")
    )
)]
pub struct Link(String);

/// A text that is not a hash.
#[derive(Debug, thiserror::Error)]
#[error("invalid hash {0:?}: expected 64 hexadecimal digits in lower case")]
pub struct LinkError(String);

impl Link {
    /// How many digits it has.
    const DIGITS: usize = 64;

    /// The hash that the first line of all names as the one before it: zeros.
    pub fn none() -> Self {
        Self("0".repeat(Self::DIGITS))
    }

    fn from_parts(text: &[&str]) -> Self {
        let hash = text.iter().fold(Sha256::new(), Digest::chain_update);
        Self(format!("{:x}", hash.finalize()))
    }
}

impl TryFrom<String> for Link {
    type Error = LinkError;

    fn try_from(text: String) -> Result<Self, LinkError> {
        let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if digits && text.len() == Self::DIGITS { Ok(Self(text)) } else { Err(LinkError(text)) }
    }
}

impl std::str::FromStr for Link {
    type Err = LinkError;

    fn from_str(text: &str) -> Result<Self, LinkError> {
        text.to_owned().try_into()
    }
}

impl From<Link> for String {
    fn from(link: Link) -> Self {
        link.0
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "AuditRecord"))]
pub struct Record {
    /// Its number, from 1.
    pub seq: u64,
    /// When it was written, in Unix seconds.
    pub at: f64,
    /// The hash of the line before.
    pub prev: Link,
    /// Its own hash.
    pub hash: Link,
    /// Its content.
    #[serde(flatten)]
    pub entry: Entry,
}

/// A line's place in the chain, whatever its content.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Head {
    pub(super) seq: u64,
    pub(super) at: f64,
    pub(super) prev: Link,
    pub(super) hash: Link,
}

/// A line before it has its hash.
#[derive(Serialize)]
struct Unsealed<'a> {
    seq: u64,
    at: f64,
    prev: &'a Link,
    #[serde(flatten)]
    entry: &'a Entry,
}

/// What is wrong with one line.
#[derive(Debug, thiserror::Error)]
pub(super) enum LineError {
    #[error("it is not an entry ({0})")]
    NoEntry(#[from] serde_json::Error),
    #[error("its text does not match its hash")]
    Altered(Box<Head>),
}

/// Makes the line that follows the one with the hash `prev`, without an end of line, and its hash.
pub(super) fn seal(
    seq: u64,
    at: f64,
    prev: &Link,
    entry: &Entry,
) -> serde_json::Result<(String, Link)> {
    let text = serde_json::to_string(&Unsealed { seq, at, prev, entry })?;
    let hash = Link::from_parts(&[&text]);
    let before = previous(prev);
    let sealed = text.replacen(&before, &format!("{before}{}", own(&hash)), 1);
    Ok((sealed, hash))
}

/// Reads a line's head, and checks that its text matches its hash.
pub(super) fn open(line: &str) -> Result<Head, LineError> {
    let head: Head = serde_json::from_str(line)?;
    let (before, own) = (previous(&head.prev), own(&head.hash));
    match line.split_once(&format!("{before}{own}")) {
        Some((first, rest)) if Link::from_parts(&[first, &before, rest]) == head.hash => Ok(head),
        _ => Err(LineError::Altered(Box::new(head))),
    }
}

fn previous(link: &Link) -> String {
    format!("\"prev\":\"{link}\",")
}

fn own(link: &Link) -> String {
    format!("\"hash\":\"{link}\",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_line_has_the_documented_format() {
        let (line, hash) = seal(1, 1.5, &Link::none(), &Entry::Ended { left: 0 }).unwrap();
        let zeros = "0".repeat(64);
        assert_eq!(
            line,
            format!(
                r#"{{"seq":1,"at":1.5,"prev":"{zeros}","hash":"{hash}","what":"ended","left":0}}"#
            )
        );
        // The same as `sed 's/"hash":"[0-9a-f]*",//' | tr -d '\n' | sha256sum`.
        let unsealed = line.replace(&own(&hash), "");
        assert_eq!(Link::from_parts(&[&unsealed]), hash);
        assert_eq!(Link::from_parts(&["ab", "c"]).to_string(), ABC);
    }

    /// The published example of SHA-256.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn text_inside_an_entry_that_looks_like_a_hash_is_ignored() {
        let hostile = format!("{}{}", previous(&Link::none()), own(&Link::none()));
        let entry = Entry::Restored { container: "4f2a".to_owned(), how: hostile };
        let (line, hash) = seal(7, 2.0, &Link::none(), &entry).unwrap();
        let head = open(&line).unwrap();
        assert_eq!((head.seq, head.hash), (7, hash));
        assert_eq!(serde_json::from_str::<Record>(&line).unwrap().entry, entry);
    }

    #[test]
    fn hash_has_64_lower_case_digits() {
        assert!("0".repeat(64).parse::<Link>().is_ok());
        for bad in ["", "0", &"0".repeat(65), &"G".repeat(64), &"A".repeat(64)] {
            assert!(bad.parse::<Link>().is_err(), "{bad}");
        }
    }
}
