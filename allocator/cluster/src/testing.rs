//! What tests share: a client of an engine, and a count of warnings.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bollard::Docker;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{DefaultGuard, set_default};
use tracing::{Event, Level, Metadata, Subscriber};

/// The client of an engine that listens on this socket.
pub(crate) fn docker(socket: &Path) -> Docker {
    Docker::connect_with_host(&format!("unix://{}", socket.display())).unwrap()
}

/// Counts the warnings of this thread, until it is dropped.
pub(crate) struct Warnings {
    count: Arc<AtomicUsize>,
    _guard: DefaultGuard,
}

impl Warnings {
    /// Counts those of a module and the modules in it.
    pub(crate) fn of(module: &'static str) -> Self {
        let count = Arc::<AtomicUsize>::default();
        let guard = set_default(Counter { module, count: Arc::clone(&count) });
        Self { count, _guard: guard }
    }

    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}

struct Counter {
    module: &'static str,
    count: Arc<AtomicUsize>,
}

impl Subscriber for Counter {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN && metadata.target().starts_with(self.module)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
