//! Serves the allocator's page with sample jobs, ten minutes into their training:
//! `cargo run --package paceline-system-tests --example page -- 127.0.0.1:7224`.

use std::sync::Arc;
use std::time::Duration;

use paceline_api::clock::unix_seconds;
use paceline_system_tests::sample_snapshot;

/// Seconds of the run that have passed when the page is first served.
const PAST: u32 = 600;

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "this is a program for people")]
async fn main() -> anyhow::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7224".to_owned());
    let started_at = unix_seconds() - f64::from(PAST);
    let (web, channels) = sample_snapshot::page(&address, started_at, PAST).await?;
    println!("{}", web.address());
    loop {
        let now = sample_snapshot::snapshot(started_at, unix_seconds() - started_at);
        channels.snapshots.send_replace(Arc::new(now));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
