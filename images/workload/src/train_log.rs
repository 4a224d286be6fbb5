//! The lines that a training run prints: those of PyTorch's examples, which many tools can read.

use std::io::{self, Write};

use crate::schedule::Schedule;

/// Prints the loss of some batches, and the mean of all of them at the end.
#[derive(Debug)]
pub struct TrainLog<W> {
    out: W,
    schedule: Schedule,
    interval: u64,
    steps: u64,
    finite: u32,
    sum: f64,
    last: f64,
}

impl<W: Write> TrainLog<W> {
    /// A log of a run that has made this many steps before, with a line for every `interval`th batch
    /// of an epoch, including the first.
    pub fn new(out: W, schedule: Schedule, interval: u64, steps: u64) -> Self {
        Self { out, schedule, interval, steps, finite: 0, sum: 0.0, last: f64::NAN }
    }

    /// The loss of the next batch.
    pub fn batch(&mut self, loss: f64) -> io::Result<()> {
        self.steps += 1;
        self.last = loss;
        // As at the endpoint, losses that are not numbers do not enter the mean.
        if loss.is_finite() {
            self.sum += loss;
            self.finite += 1;
        }
        let Self { out, schedule, steps, .. } = self;
        let batch = schedule.batches_before(*steps);
        if !batch.is_multiple_of(self.interval) {
            return Ok(());
        }
        let epoch = schedule.epoch_of(*steps);
        let items = schedule.items();
        let batches = schedule.steps_per_epoch();
        let seen = usize::try_from(batch).map_or(items, |batch| batch * schedule.batch_size());
        let percent = (200 * batch + batches) / (2 * batches);
        writeln!(
            out,
            "Train Epoch: {epoch} [{seen}/{items} ({percent}%)]\tLoss: {loss:.6}\tStep: {steps}"
        )
    }

    /// A line of another kind, such as the loss on the test images.
    pub fn line(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.out, "{line}")
    }

    /// The last line.
    pub fn finish(&mut self) -> io::Result<()> {
        let mean = self.sum / f64::from(self.finite);
        let Self { out, steps, last, .. } = self;
        writeln!(out, "finished: steps={steps} mean_loss={mean:.6} last={last:.6}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_matches_format_of_pytorch() {
        let mut out = Vec::new();
        let mut log = TrainLog::new(&mut out, Schedule::new(60_000, 64, 1, None), 10, 0);
        for step in 0..11 {
            log.batch(500.0 + f64::from(step)).unwrap();
        }
        log.batch(f64::NAN).unwrap();
        log.line("Test").unwrap();
        log.finish().unwrap();
        let text = "Train Epoch: 1 [0/60000 (0%)]\tLoss: 500.000000\tStep: 1\n\
            Train Epoch: 1 [640/60000 (1%)]\tLoss: 510.000000\tStep: 11\n\
            Test\n\
            finished: steps=12 mean_loss=505.000000 last=NaN\n";
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }

    #[test]
    fn image_count_restarts_at_each_epoch() {
        let mut out = Vec::new();
        let mut log = TrainLog::new(&mut out, Schedule::new(30, 10, 2, None), 2, 0);
        for _ in 0..4 {
            log.batch(1.0).unwrap();
        }
        let text = "Train Epoch: 1 [0/30 (0%)]\tLoss: 1.000000\tStep: 1\n\
            Train Epoch: 1 [20/30 (67%)]\tLoss: 1.000000\tStep: 3\n\
            Train Epoch: 2 [0/30 (0%)]\tLoss: 1.000000\tStep: 4\n";
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }

    #[test]
    fn resumed_run_continues_within_its_epoch() {
        let mut out = Vec::new();
        let mut log = TrainLog::new(&mut out, Schedule::new(30, 10, 2, None), 1, 4);
        log.batch(1.0).unwrap();
        let text = "Train Epoch: 2 [10/30 (33%)]\tLoss: 1.000000\tStep: 5\n";
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }
}
