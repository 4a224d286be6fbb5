//! Losses that are tensors of libtorch.

use tch::{Device, TchError, Tensor};

use crate::handle::Batch;

impl Batch<'_> {
    /// Ends the batch with a loss that is a tensor of one element.
    ///
    /// A tensor on the CPU is read at once. One on another device is read on a thread of the reporter,
    /// as by [`Batch::loss_later`], so that the loop does not wait for the device. The latency is then
    /// the time in which the loop submitted the work. Over a few batches that equals the device's own
    /// time, because its queue is short.
    ///
    /// A tensor that is not one number counts as rejected.
    pub fn tensor(self, loss: &Tensor) {
        // Detached, so that a waiting loss keeps no graph alive.
        match loss.f_detach() {
            Ok(loss) if loss.device() != Device::Cpu => self.loss_later(move || number(&loss)),
            loss => self.loss(loss.map_or(f64::NAN, |loss| number(&loss))),
        }
    }
}

fn number(loss: &Tensor) -> f64 {
    let one = |loss: &Tensor| -> Result<f64, TchError> { loss.f_reshape([])?.f_double_value(&[]) };
    one(loss).unwrap_or(f64::NAN)
}
