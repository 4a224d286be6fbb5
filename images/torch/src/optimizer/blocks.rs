//! Tensors in blocks that fit into a processor's cache.

use tch::{TchError, Tensor};

/// The elements of a block, 128 KiB of them: half a dozen such blocks fit into a core's second
/// cache. It is a multiple of a vector's length, so that results do not depend on it, and no more than
/// libtorch gives to one thread, as waiting for others would take longer than the work.
const BLOCK: i64 = 1 << 15;

/// Consecutive parts of a tensor, which share its memory if it is contiguous. One that is small is a
/// single block and keeps its shape.
pub(super) fn blocks(tensor: &Tensor) -> Result<Vec<Tensor>, TchError> {
    let tensor = tensor.f_detach()?;
    if i64::try_from(tensor.numel()).is_ok_and(|count| count <= BLOCK) {
        return Ok(vec![tensor]);
    }
    tensor.f_reshape([-1])?.f_split(BLOCK, 0)
}

/// Room to compute in, which the blocks of one optimizer use one after the other.
#[derive(Debug)]
pub(super) struct Room(Tensor);

impl Room {
    /// Room for a block of any of these tensors.
    pub(super) fn beside(tensors: &[Tensor]) -> Result<Self, TchError> {
        let options = tensors.first().map_or(tch::kind::FLOAT_CPU, |it| (it.kind(), it.device()));
        Ok(Self(Tensor::f_empty([BLOCK], options)?))
    }

    /// The part of it that has a block's shape.
    pub(super) fn like(&self, block: &Tensor) -> Result<Tensor, TchError> {
        let count = i64::try_from(block.numel()).unwrap_or(BLOCK);
        self.0.f_narrow(0, 0, count)?.f_view_as(block)
    }
}

/// A number as a tensor without dimensions, for operations that take no plain number.
pub(super) fn number(value: f64, beside: &Tensor) -> Result<Tensor, TchError> {
    Tensor::f_full([0_i64; 0], value, (beside.kind(), beside.device()))
}
