//! A renderer that shows nothing.

use std::error::Error;
use std::sync::{Arc, Mutex};

use burn::train::LearnerSummary;
use burn::train::logger::{EvaluationProgressLogger, TrainingProgressLogger};
use burn::train::metric::MetricDefinition;
use burn::train::renderer::{
    EvaluationName, MetricState, MetricsRenderer, MetricsRendererEvaluation,
    MetricsRendererTraining,
};

/// Records the names of the calls. The buffer must have room: one test counts allocations.
pub(crate) struct CallRecorder(Arc<Mutex<Vec<&'static str>>>);

impl CallRecorder {
    pub(crate) fn new(calls: Arc<Mutex<Vec<&'static str>>>) -> Self {
        Self(calls)
    }

    fn write(&self, call: &'static str) {
        self.0.lock().expect("no call panics").push(call);
    }
}

impl MetricsRendererTraining for CallRecorder {
    fn update_train(&mut self, _: MetricState) {
        self.write("update_train");
    }

    fn update_valid(&mut self, _: MetricState) {
        self.write("update_valid");
    }

    fn on_train_end(&mut self, _: Option<LearnerSummary>) -> Result<(), Box<dyn Error>> {
        self.write("on_train_end");
        Ok(())
    }
}

impl TrainingProgressLogger for CallRecorder {
    fn start(&mut self, epochs: usize, first: usize, items: Option<usize>, label: Option<&str>) {
        assert_eq!((epochs, first, items, label), (9, 4, Some(64), Some("a label")));
        self.write("start");
    }

    fn update_epoch(&mut self, _: usize) {
        self.write("update_epoch");
    }

    fn start_split(&mut self, _: &str, _: usize) {
        self.write("start_split");
    }

    fn update_split(&mut self, _: usize) {
        self.write("update_split");
    }

    fn end_split(&mut self) {
        self.write("end_split");
    }

    fn end(&mut self) {
        self.write("end");
    }

    fn log_event_training(&mut self, _: String) {
        self.write("log_event_training");
    }
}

impl MetricsRendererEvaluation for CallRecorder {
    fn update_test(&mut self, _: EvaluationName, _: MetricState) {
        self.write("update_test");
    }

    fn on_test_end(&mut self, _: Option<LearnerSummary>) -> Result<(), Box<dyn Error>> {
        self.write("on_test_end");
        Ok(())
    }
}

impl EvaluationProgressLogger for CallRecorder {
    fn start_global_progress(&mut self, _: usize) {
        self.write("start_global_progress");
    }

    fn start_test(&mut self, _: &str, _: usize) {
        self.write("start_test");
    }

    fn update_test_progress(&mut self, _: usize) {
        self.write("update_test_progress");
    }

    fn end_test(&mut self) {
        self.write("end_test");
    }

    fn end_global_progress(&mut self) {
        self.write("end_global_progress");
    }

    fn log_event_evaluation(&mut self, _: String) {
        self.write("log_event_evaluation");
    }
}

impl MetricsRenderer for CallRecorder {
    fn manual_close(&mut self) {
        self.write("manual_close");
    }

    fn register_metric(&mut self, _: MetricDefinition) {
        self.write("register_metric");
    }
}
