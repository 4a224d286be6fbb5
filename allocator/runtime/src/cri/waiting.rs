//! Pods that opted in, and of which the kubelet makes no container: mostly because it cannot get the image.
//! They are not jobs yet, but their owners may look for them here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Fetching an image may take this long without being named.
const PATIENCE: Duration = Duration::from_secs(30);

/// Since when each of them waits.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting(Arc<Mutex<BTreeMap<String, Since>>>);

#[derive(Clone, Copy, Debug)]
struct Since {
    began: Instant,
    /// Whether it was named.
    named: bool,
}

impl Waiting {
    /// Of `all` that wait now, by their ids and names, the names of those that do for long, each once.
    pub(super) fn for_long(&self, all: &BTreeMap<&str, String>, now: Instant) -> Vec<String> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|id, _| all.contains_key(id.as_str()));
        let mut names = Vec::new();
        for (id, name) in all {
            let one = waiting.entry((*id).to_owned()).or_insert(Since { began: now, named: false });
            if !one.named && now.saturating_duration_since(one.began) >= PATIENCE {
                one.named = true;
                names.push(name.clone());
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pod_that_waits_for_long_is_named_once() {
        let waiting = Waiting::default();
        let began = Instant::now();
        let pods = |ids: &[&'static str]| ids.iter().map(|id| (*id, format!("lab/{id}"))).collect();
        let at = |seconds, ids| waiting.for_long(&pods(ids), began + Duration::from_secs(seconds));
        assert!(at(0, &["a"]).is_empty() && at(29, &["a", "b"]).is_empty());
        assert_eq!(at(30, &["a", "b"]), ["lab/a"]);
        assert_eq!(at(70, &["a", "b"]), ["lab/b"]);
        // It got a container, and lost it.
        assert!(at(80, &["b"]).is_empty() && at(90, &["a", "b"]).is_empty());
        assert_eq!(at(120, &["a", "b"]), ["lab/a"]);
    }
}
