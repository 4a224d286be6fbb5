//! Parameters that are kept by servers.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use paceline_ps::{Model, Worker, WorkerError};
use paceline_workload::Stop;
use tch::{Kind, TchError, Tensor, no_grad};

use super::Optimizer;
use crate::parameters::Parameters;

/// The time after which an unreachable server counts as lost.
const CONNECT_TIMEOUT: Duration = Duration::from_mins(1);

/// Pushes gradients to parameter servers and takes the parameters that they give.
///
/// It has no state to save: the servers keep it.
#[derive(Debug)]
pub struct Remote {
    worker: Worker,
    tensors: Vec<Tensor>,
    /// All parameters in one row.
    parameters: Vec<f32>,
    gradient: Vec<f32>,
    loss: f64,
    /// Whether the servers and this worker have the same parameters.
    joined: bool,
    /// Whether the servers have ended the training.
    stop: Stop,
}

impl Remote {
    /// Connects to the servers, in the order of the parts that they keep. Once the servers want no
    /// more gradients, it requests `stop`.
    pub fn connect(
        servers: &[String],
        parameters: &Parameters,
        stop: Stop,
    ) -> Result<Self, WorkerError> {
        let tensors: Vec<_> = parameters.tensors().iter().map(Tensor::shallow_clone).collect();
        let count = tensors.iter().map(Tensor::numel).sum();
        let model = Model { fingerprint: fingerprint(parameters), parameters: count };
        let worker = Worker::connect(servers, model, CONNECT_TIMEOUT)?;
        let zeros = vec![0.0; count];
        Ok(Self {
            worker,
            tensors,
            parameters: zeros.clone(),
            gradient: zeros,
            loss: f64::NAN,
            joined: false,
            stop,
        })
    }

    fn write_back(&self) -> Result<(), TchError> {
        let mut rest = &self.parameters[..];
        no_grad(|| {
            self.tensors.iter().try_for_each(|tensor| {
                let (part, others) = rest.split_at(tensor.numel());
                rest = others;
                let part = Tensor::from_slice(part).f_view(tensor.size().as_slice())?;
                tensor.shallow_clone().f_copy_(&part)
            })
        })
    }
}

impl Optimizer for Remote {
    /// The first step only exchanges parameters: a gradient at other parameters is useless.
    fn step(&mut self, gradients: &[Tensor]) -> Result<(), TchError> {
        let pushed = if self.joined {
            flatten(gradients, &self.tensors, &mut self.gradient)?;
            self.worker.push(self.loss, &self.gradient, &mut self.parameters)
        } else {
            flatten(&self.tensors, &self.tensors, &mut self.parameters)?;
            self.joined = true;
            self.worker.start(&mut self.parameters)
        };
        let pushed = pushed.map_err(|error| TchError::Io(io::Error::other(error)))?;
        if pushed.done {
            self.stop.request();
        }
        self.write_back()
    }

    fn tell(&mut self, loss: f64) {
        self.loss = loss;
    }

    fn state(&self) -> Vec<(String, Tensor)> {
        Vec::new()
    }

    fn restore(&mut self, _: &BTreeMap<String, Tensor>) -> Result<(), TchError> {
        Ok(())
    }
}

/// Puts tensors with the sizes of `like` into one row; undefined tensors become zeros.
fn flatten(tensors: &[Tensor], like: &[Tensor], into: &mut [f32]) -> Result<(), TchError> {
    let mut rest = into;
    for (tensor, like) in tensors.iter().zip(like) {
        let (part, others) = rest.split_at_mut(like.numel());
        rest = others;
        if tensor.defined() {
            let row = tensor.f_detach()?.f_to_kind(Kind::Float)?.f_contiguous()?;
            row.f_copy_data(part, part.len())?;
        } else {
            part.fill(0.0);
        }
    }
    Ok(())
}

/// The fingerprint of names and shapes (FNV-1a, 64 bits).
fn fingerprint(parameters: &Parameters) -> u64 {
    let of = |(name, tensor): (&String, &Tensor)| format!("{name} {:?};", tensor.size());
    let text: String = parameters.names().iter().zip(parameters.tensors()).map(of).collect();
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
