//! Jobs for tests of the signals.

use paceline_wire::{
    Checkpoint, Cpu, Direction, Eval, Latency, Progress, Reached, SCHEMA, Signals, State, Targets,
};

use super::number::number;
use super::{Doing, History, Sample, Task};

/// When the jobs here start, in Unix seconds.
pub(crate) const STARTED: f64 = 1.7e9;

/// A loop that reports neither evaluations nor checkpoints.
pub(crate) const TRAINING: Doing = Doing { task: Task::Training, since: 0.0 };

/// A job's reports, sampled as often as its history asks for.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) history: History,
    pub(crate) sample: Sample,
}

impl Job {
    pub(crate) fn new() -> Self {
        let mut history = History::new();
        history.push(Sample::default());
        Self { history, sample: Sample::default() }
    }

    /// A job that makes `rate` steps per second, one for each loss.
    pub(crate) fn with_losses(losses: &[f64], rate: f64) -> Self {
        let mut job = Self::new();
        job.train(losses, rate);
        job
    }

    /// Continues with a step for each loss.
    pub(crate) fn train(&mut self, losses: &[f64], rate: f64) {
        let from = self.sample.at;
        for (done, loss) in (1..).zip(losses) {
            self.wait_until(from + number(done) / rate);
            self.sample.step += 1;
            if loss.is_finite() {
                self.sample.count += 1;
                self.sample.sum += loss;
            } else {
                self.sample.rejected += 1;
            }
        }
        self.history.push(self.sample);
    }

    /// Lets `seconds` seconds pass without a report.
    pub(crate) fn wait(&mut self, seconds: f64) {
        self.wait_until(self.sample.at + seconds);
        self.history.push(self.sample);
    }

    /// Evaluates for `seconds` seconds, and reports that.
    pub(crate) fn pause(&mut self, seconds: f64) {
        self.sample.paused = true;
        self.history.push(self.sample);
        self.wait(seconds);
        self.sample.paused = false;
        self.history.push(self.sample);
    }

    /// Stops the whole process for `seconds` seconds.
    pub(crate) fn freeze(&mut self, seconds: f64) {
        self.sample.at += seconds;
        self.history.push(self.sample);
    }

    fn wait_until(&mut self, at: f64) {
        loop {
            let next =
                self.history.last().map_or(0.0, |last| last.at) + self.history.wanted_period();
            if next >= at {
                break;
            }
            self.history.push(Sample { at: next, ..self.sample });
        }
        self.sample.at = at;
    }

    /// Whether it has begun to report.
    pub(crate) fn state(&self) -> State {
        let Sample { count, rejected, .. } = self.sample;
        if count + rejected > 0 { State::Running } else { State::Starting }
    }

    /// The job's progress.
    pub(crate) fn progress(&self) -> Progress {
        let Sample { at, step, count, sum, rejected, .. } = self.sample;
        Progress {
            state: self.state(),
            now: STARTED + at,
            step: Some(step),
            eval: Eval { count, sum, ..progress().eval },
            rejected,
            ..progress()
        }
    }
}

/// The progress of a job without any report.
pub(crate) fn progress() -> Progress {
    Progress {
        schema: SCHEMA,
        job: "job".to_owned(),
        pid: 1,
        instance: "0".to_owned(),
        source: "reporter".to_owned(),
        state: State::Starting,
        started_at: STARTED,
        now: STARTED,
        step: None,
        epoch: None,
        total_steps: None,
        expected_steps: None,
        dataset: None,
        eval: Eval {
            name: "loss".to_owned(),
            direction: Direction::Minimize,
            value: None,
            window: 5,
            updated_at: None,
            count: 0,
            sum: 0.0,
            first: None,
            best: None,
            max_abs: None,
        },
        batch_latency: Latency::default(),
        targets: Targets::default(),
        reached: Reached::default(),
        checkpoint: Checkpoint::default(),
        validation: None,
        signals: Signals::default(),
        cpu: Cpu::default(),
        rank: None,
        sidecar: None,
        tensorboard: None,
        dropped: 0,
        rejected: 0,
    }
}

/// Random numbers: Marsaglia, Xorshift RNGs, Journal of Statistical Software 8 (2003).
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..10 {
            random.uniform();
        }
        random
    }

    /// A uniform number from 0 to 1.
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        number(self.0 >> 11) / 9_007_199_254_740_992.0
    }

    /// A nearly standard normal number: the sum of twelve uniform numbers.
    pub(crate) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}
