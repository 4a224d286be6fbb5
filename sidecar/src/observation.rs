//! What a source says happened: the one language between all parsers and the job's ledger.

/// Which data a loss was computed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// The data that the model learns from.
    Train,
    /// Held-out data, looked at during training.
    Validation,
    /// Held-out data, looked at at the end.
    Test,
}

/// What a printed loss is the mean of.
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
    /// What it is called there, such as `loss`, `train_loss`, `Loss_D`.
    pub name: String,
    /// What it was computed on.
    pub phase: Phase,
    /// What it is the mean of.
    pub span: Span,
    /// The value; NaN and infinity are kept, and counted by whoever takes them.
    pub value: f64,
}

/// What one line, frame, record or row says. What it does not say is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// Wall time in Unix seconds, if the source itself says it.
    pub at: Option<f64>,
    /// The global step, or the batch within the epoch if `step_in_epoch` is set: counted as the
    /// source counts.
    pub step: Option<u64>,
    /// Whether `step` begins anew with each epoch.
    pub step_in_epoch: bool,
    /// Whether `step` and `total_steps` count samples: a batch is then several of them.
    pub step_in_samples: bool,
    /// How many steps `step` counts up to.
    pub total_steps: Option<u64>,
    /// How many steps of the whole run the job expects to need.
    pub expected_steps: Option<u64>,
    /// The part of the whole run that is done, from 0 to 1, where the source does not count steps.
    pub done: Option<f64>,
    /// The epoch, as the source counts it; fractions (Hugging Face) are kept.
    pub epoch: Option<f64>,
    /// How many epochs there are to be.
    pub total_epochs: Option<u64>,
    /// Seconds that one step takes, if the source says so.
    pub batch_seconds: Option<f64>,
    /// The rank of the process that printed it, if a launcher's prefix or the line says so.
    pub rank: Option<u32>,
    /// The losses; empty for a line that only says how far the job is.
    pub losses: Vec<Loss>,
}
