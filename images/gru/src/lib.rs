//! The two tasks of `gru`: a problem that takes a long memory, and the characters of a text.

pub mod adding;
pub mod text;

/// The size of the first dimension.
fn length(tensor: &tch::Tensor) -> i64 {
    tensor.size().first().copied().unwrap_or_default()
}
