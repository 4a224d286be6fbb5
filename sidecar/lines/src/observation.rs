//! Observations: the common form in which all parsers report what a job printed or wrote.

/// Which data a loss was computed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// The data that the model learns from.
    Train,
    /// Held-out data, evaluated during training.
    Validation,
    /// Held-out data, evaluated at the end.
    Test,
}

/// The steps over which a printed loss is averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Span {
    /// One step.
    Step,
    /// The steps since the line before, as most `logging_steps` do.
    Interval,
    /// The epoch so far, as Keras's bars do: a sawtooth.
    EpochSoFar,
    /// A whole epoch, or a whole pass over held-out data.
    Epoch,
    /// The whole run so far, or at its end: never a step's loss.
    Run,
}

/// A loss as it was printed.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// Its name in the output, such as `loss`, `train_loss`, `Loss_D`.
    pub name: String,
    /// The data that it was computed on.
    pub phase: Phase,
    /// The steps over which it is averaged.
    pub span: Span,
    /// The value. NaN and infinity are kept; the reporter counts them.
    pub value: f64,
}

/// A printed time that may be the one since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Elapsed {
    /// The time in seconds.
    pub seconds: f64,
    /// Whether its name says that it is the time since the start. If not, it may be that of a step.
    pub is_named: bool,
}

/// The content of one line, frame, record or row. A field that is not given is `None`.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// Wall time in Unix seconds, if the source gives it.
    pub at: Option<f64>,
    /// The global step, or the batch within the epoch if `step_in_epoch` is set: counted as the
    /// source counts.
    pub step: Option<u64>,
    /// Whether `step` restarts with each epoch.
    pub step_in_epoch: bool,
    /// Whether `step` and `total_steps` count samples: a batch is then several of them.
    pub step_in_samples: bool,
    /// Whether `step` is rounded, as in `12K`: several lines may have the same one.
    pub is_rough: bool,
    /// How many steps `step` counts up to.
    pub total_steps: Option<u64>,
    /// How many steps of the whole run the job expects to need.
    pub expected_steps: Option<u64>,
    /// The part of the whole run that is done, from 0 to 1, where the source does not count steps.
    pub done: Option<f64>,
    /// The epoch, as the source counts it; fractions (Hugging Face) are kept.
    pub epoch: Option<f64>,
    /// Whether the source is known to count epochs from 0.
    pub epochs_from_zero: bool,
    /// The planned number of epochs.
    pub total_epochs: Option<u64>,
    /// The number of samples in a batch, if a line announces it.
    pub batch_size: Option<u64>,
    /// Seconds that one step takes, if the source reports them.
    pub batch_seconds: Option<f64>,
    /// The time since the start of the run, if the source gives it.
    pub elapsed: Option<Elapsed>,
    /// Whether an earlier step had the first latency, which includes one-time work, but not as a time that is used.
    pub warm: bool,
    /// The rank of the process that printed it, if a launcher's prefix or the line gives it.
    pub rank: Option<u32>,
    /// Whether nothing names the loop that it is of: it may be the training or an evaluation.
    pub of_unnamed_loop: bool,
    /// The losses; empty for a line that only reports progress.
    pub losses: Vec<Loss>,
}
