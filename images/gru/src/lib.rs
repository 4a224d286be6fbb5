//! The two tasks of `gru`: a problem that takes a long memory, and the characters of a text.

pub mod adding;
pub mod text;
