//! A job that listens on a Unix socket: nothing on any network, not even on the loopback.
//!
//! ```console
//! $ cargo run --example unix_socket
//! $ curl -s --unix-socket /tmp/paceline-example.sock http://localhost/v1/progress
//! ```

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use paceline_reporter::{Reporter, StartError};

fn main() -> Result<(), StartError> {
    let path = std::env::temp_dir().join("paceline-example.sock");
    let address = format!("unix:{}", path.display());
    let reporter = Reporter::builder("example").listen(&address).from_env().start()?;
    println!("curl -s --unix-socket {} http://localhost/v1/progress", path.display());
    let mut sum = 0.0;
    for step in 1..=50_000_000_u32 {
        // One report for many rounds of the loop, with their number of steps.
        sum += 1.0 / (f64::from(step) * f64::from(step));
        if step.is_multiple_of(100_000) {
            reporter.step(step.into());
            reporter.report(std::f64::consts::PI.powi(2) / 6.0 - sum);
        }
    }
    reporter.finish();
    Ok(())
}
