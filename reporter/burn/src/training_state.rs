//! Turns Burn's calls into reports.

use burn_train::Interrupter;
use burn_train::metric::store::Split;
use burn_train::metric::{MetricDefinition, MetricId, NumericEntry};
use burn_train::renderer::MetricState;
use paceline_reporter::Reporter;

use crate::phases::{PhaseTracker, Transition};

/// The reason that Burn logs for a stop at the reporter's request.
const REASON: &str = "the reporter asked to stop: the objective is reached or SIGTERM was received";

/// One training as the reporter sees it.
pub(crate) struct TrainingState {
    reporter: Reporter,
    phases: PhaseTracker,
    interrupter: Interrupter,
    /// The metric that is the loss.
    loss: String,
    /// Its id, once Burn has registered it.
    loss_id: Option<MetricId>,
    /// The loss of the running batch.
    batch_loss: Option<f64>,
    epoch: usize,
    part: Part,
    items: usize,
    items_total: usize,
    /// Whether the training is running.
    running: bool,
}

/// The part of an epoch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Neither,
    Training,
    Validation,
}

impl TrainingState {
    pub(crate) fn new(reporter: Reporter, interrupter: Interrupter) -> Self {
        Self {
            phases: PhaseTracker::new(reporter.clone()),
            reporter,
            interrupter,
            loss: "Loss".to_owned(),
            loss_id: None,
            batch_loss: None,
            epoch: 1,
            part: Part::Neither,
            items: 0,
            items_total: 0,
            running: false,
        }
    }

    pub(crate) fn set_loss(&mut self, name: String) {
        self.loss = name;
    }

    pub(crate) fn metric(&mut self, definition: &MetricDefinition) {
        if *definition.name == self.loss {
            self.loss_id = Some(definition.metric_id.clone());
        }
    }

    pub(crate) fn start(&mut self, epoch: usize) {
        self.epoch = epoch;
        self.running = true;
        if self.loss_id.is_none() {
            log::warn!("cannot report the loss: the training has no metric {:?}", self.loss);
        }
    }

    pub(crate) fn start_split(&mut self, split: &str, items: usize) {
        (self.items, self.items_total) = (0, items);
        self.batch_loss = None;
        if split == <&str>::from(Split::Train) {
            self.part = Part::Training;
            self.reporter.epoch(u64::try_from(self.epoch).unwrap_or(u64::MAX));
            self.phases.enter(Transition::Train);
        } else {
            self.part = Part::Validation;
            self.phases.enter(Transition::Evaluate);
        }
    }

    pub(crate) fn train(&mut self, state: &MetricState) {
        match self.loss_of(state) {
            Some(NumericEntry::Value(loss)) => self.batch_loss = Some(*loss),
            Some(NumericEntry::Aggregated { aggregated_value, .. }) => {
                self.batch_loss = Some(*aggregated_value);
            }
            // The mean of the epoch, whose batches have all been reported.
            Some(NumericEntry::Final(_)) | None => {}
        }
    }

    /// Reports the loss of a whole validation split, which Burn gives at the end of the split.
    pub(crate) fn valid(&mut self, state: &MetricState) {
        if let Some(NumericEntry::Final(loss)) = self.loss_of(state)
            && !self.is_cut_short()
        {
            self.reporter.validation(*loss);
        }
    }

    pub(crate) fn progress(&mut self, items: usize) {
        self.items = items;
        if self.part == Part::Training {
            let loss = self.batch_loss.take();
            self.phases.enter(Transition::Next(loss));
        }
        if self.reporter.should_stop() && !self.interrupter.should_stop() {
            self.interrupter.stop(Some(REASON));
        }
    }

    pub(crate) fn end_split(&mut self) {
        self.part = Part::Neither;
        self.phases.enter(Transition::Rest);
    }

    pub(crate) fn end_epoch(&mut self, epoch: usize) {
        self.epoch = epoch.saturating_add(1);
    }

    pub(crate) fn end(&mut self) {
        self.phases.enter(Transition::Rest);
        self.running = false;
        if self.interrupter.error().is_some() {
            self.reporter.fail();
        } else {
            self.reporter.finish();
        }
    }

    pub(crate) fn start_test(&mut self) {
        self.phases.enter(Transition::Evaluate);
    }

    pub(crate) fn end_test(&mut self) {
        self.phases.enter(Transition::Rest);
    }

    /// Whether the split was stopped before its end, so that its loss covers only a part.
    fn is_cut_short(&self) -> bool {
        self.interrupter.should_stop() && self.items < self.items_total
    }

    fn loss_of<'m>(&self, state: &'m MetricState) -> Option<&'m NumericEntry> {
        match state {
            MetricState::Numeric(entry, value)
                if Some(&entry.metric_id) == self.loss_id.as_ref() =>
            {
                value.as_ref()
            }
            MetricState::Numeric(..) | MetricState::Generic(_) => None,
        }
    }
}

/// After a panic Burn drops the renderer without a call of `end`.
impl Drop for TrainingState {
    fn drop(&mut self) {
        if self.running {
            self.reporter.fail();
        }
    }
}
