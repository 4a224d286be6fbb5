//! Who may read: whoever reaches the address, or only those who show a token.

use crate::token::Token;

/// What is asked of a request.
#[derive(Debug)]
pub(super) struct Access {
    /// What is to be shown.
    pub(super) token: Option<Token>,
    /// Whether requests that name a strange host are refused.
    pub(super) checks_host: bool,
}
