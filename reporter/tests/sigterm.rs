//! SIGTERM, with a loop that checks `should_stop`.

#![cfg(feature = "sigterm")]

mod client;

use client::{progress, wait_until};
use paceline_reporter::Reporter;

#[test]
fn sigterm_tells_the_loop_to_stop_and_leaves_the_last_progress() {
    let folder = tempfile::tempdir().unwrap();
    let status = folder.path().join("status.json");
    let builder = Reporter::builder("vae").stop_on_sigterm().status_file(&status);
    let reporter = builder.listen("127.0.0.1:0").start().unwrap();
    reporter.report(1.0);
    assert!(!reporter.should_stop());
    signal_hook::low_level::raise(signal_hook::consts::SIGTERM).unwrap();
    assert!(reporter.should_stop());
    reporter.finish();
    assert_eq!(progress(&reporter).step, Some(1));
    drop(reporter);
    let text = || std::fs::read_to_string(&status).unwrap_or_default();
    wait_until("the last progress", || text().contains(r#""state":"finished""#));
}
