//! Tensors in blocks that fit into a processor's cache.

use tch::{TchError, Tensor};

/// The elements of a block where one thread computes, 128 KiB of them. Half a dozen such blocks fit
/// into a core's second-level cache. It is a multiple of a vector's length, so that results do not
/// depend on it.
const ALONE: i64 = 1 << 15;
/// The elements of a block for each of several threads. The threads wait for each other after every
/// operation on a block, so there must not be too many blocks.
const TOGETHER: i64 = 1 << 16;

/// The size of an optimizer's blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks(i64);

impl Blocks {
    /// The size for the current number of libtorch's threads.
    pub(super) fn new() -> Self {
        match i64::from(tch::get_num_threads()) {
            ..=1 => Self(ALONE),
            threads => Self(TOGETHER * threads),
        }
    }

    /// Consecutive parts of a tensor, which share its memory if it is contiguous. One that is small is
    /// a single block and keeps its shape.
    pub(super) fn split(self, tensor: &Tensor) -> Result<Vec<Tensor>, TchError> {
        let tensor = tensor.f_detach()?;
        if i64::try_from(tensor.numel()).is_ok_and(|count| count <= self.0) {
            return Ok(vec![tensor]);
        }
        tensor.f_reshape([-1])?.f_split(self.0, 0)
    }

    /// Space for a block of any of these tensors.
    pub(super) fn room(self, tensors: &[Tensor]) -> Result<Room, TchError> {
        let options = tensors.first().map_or(tch::kind::FLOAT_CPU, |it| (it.kind(), it.device()));
        Ok(Room(Tensor::f_empty([self.0], options)?))
    }
}

/// Working space, which the blocks of one optimizer use one after the other.
#[derive(Debug)]
pub(super) struct Room(Tensor);

impl Room {
    /// The part of it that has a block's shape.
    pub(super) fn like(&self, block: &Tensor) -> Result<Tensor, TchError> {
        let count = i64::try_from(block.numel()).unwrap_or(i64::MAX);
        self.0.f_narrow(0, 0, count)?.f_view_as(block)
    }
}

/// A number as a tensor without dimensions, for operations that take no plain number.
pub(super) fn number(value: f64, beside: &Tensor) -> Result<Tensor, TchError> {
    Tensor::f_full([0_i64; 0], value, (beside.kind(), beside.device()))
}
