//! The renderer for a training.

use std::error::Error;
use std::fmt;

use burn_train::logger::{EvaluationProgressLogger, TrainingProgressLogger};
use burn_train::metric::MetricDefinition;
use burn_train::renderer::{
    EvaluationName, MetricState, MetricsRenderer, MetricsRendererEvaluation,
    MetricsRendererTraining, default_renderer,
};
use burn_train::{Interrupter, LearnerSummary};
use paceline_reporter::Reporter;

use crate::training_state::TrainingState;

/// Reports a training, and lets another renderer show it.
pub struct PacelineRenderer {
    shown: Box<dyn MetricsRenderer>,
    training: TrainingState,
}

impl PacelineRenderer {
    /// Reports a training that is shown as Burn would show it by itself.
    ///
    /// `interrupter` is [the training's](burn_train::SupervisedTraining::interrupter). It stops the
    /// training when [`Reporter::should_stop`] turns true, and shows whether an error has ended it.
    pub fn new(reporter: Reporter, interrupter: Interrupter) -> Self {
        Self::around(default_renderer(interrupter.clone(), None), reporter, interrupter)
    }

    /// Reports a training that `shown` shows. `shown` gets every call, too.
    pub fn around(
        shown: Box<dyn MetricsRenderer>,
        reporter: Reporter,
        interrupter: Interrupter,
    ) -> Self {
        Self { shown, training: TrainingState::new(reporter, interrupter) }
    }

    /// Sets the numeric metric that is the loss. The default is `Loss`, the name of Burn's
    /// `LossMetric`.
    #[must_use]
    pub fn loss(mut self, metric: impl Into<String>) -> Self {
        self.training.set_loss(metric.into());
        self
    }
}

impl fmt::Debug for PacelineRenderer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacelineRenderer").finish_non_exhaustive()
    }
}

impl MetricsRenderer for PacelineRenderer {
    fn manual_close(&mut self) {
        self.shown.manual_close();
    }

    fn register_metric(&mut self, definition: MetricDefinition) {
        self.training.metric(&definition);
        self.shown.register_metric(definition);
    }
}

impl MetricsRendererTraining for PacelineRenderer {
    fn update_train(&mut self, state: MetricState) {
        self.training.train(&state);
        self.shown.update_train(state);
    }

    fn update_valid(&mut self, state: MetricState) {
        self.training.valid(&state);
        self.shown.update_valid(state);
    }

    fn on_train_end(&mut self, summary: Option<LearnerSummary>) -> Result<(), Box<dyn Error>> {
        self.shown.on_train_end(summary)
    }
}

impl TrainingProgressLogger for PacelineRenderer {
    fn start(&mut self, epochs: usize, first: usize, items: Option<usize>, label: Option<&str>) {
        self.training.start(first);
        self.shown.start(epochs, first, items, label);
    }

    fn update_epoch(&mut self, epoch: usize) {
        self.training.end_epoch(epoch);
        self.shown.update_epoch(epoch);
    }

    fn start_split(&mut self, split: &str, total_items: usize) {
        self.training.start_split(split, total_items);
        self.shown.start_split(split, total_items);
    }

    fn update_split(&mut self, items_processed: usize) {
        self.training.progress(items_processed);
        self.shown.update_split(items_processed);
    }

    fn end_split(&mut self) {
        self.training.end_split();
        self.shown.end_split();
    }

    fn end(&mut self) {
        self.training.end();
        self.shown.end();
    }

    fn log_event_training(&mut self, event: String) {
        self.shown.log_event_training(event);
    }
}

impl MetricsRendererEvaluation for PacelineRenderer {
    fn update_test(&mut self, name: EvaluationName, state: MetricState) {
        self.shown.update_test(name, state);
    }

    fn on_test_end(&mut self, summary: Option<LearnerSummary>) -> Result<(), Box<dyn Error>> {
        self.shown.on_test_end(summary)
    }
}

impl EvaluationProgressLogger for PacelineRenderer {
    fn start_global_progress(&mut self, total_tests: usize) {
        self.shown.start_global_progress(total_tests);
    }

    fn start_test(&mut self, name: &str, total_items: usize) {
        self.training.start_test();
        self.shown.start_test(name, total_items);
    }

    fn update_test_progress(&mut self, items_processed: usize) {
        self.shown.update_test_progress(items_processed);
    }

    fn end_test(&mut self) {
        self.training.end_test();
        self.shown.end_test();
    }

    fn end_global_progress(&mut self) {
        self.shown.end_global_progress();
    }

    fn log_event_evaluation(&mut self, event: String) {
        self.shown.log_event_evaluation(event);
    }
}
