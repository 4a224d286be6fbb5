//! Two models in one process, each with its own reporter: an ensemble, or an actor and a
//! critic.
//!
//! ```console
//! $ cargo run --example several
//! ```

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::thread;

use paceline_reporter::{Reporter, StartError};

const STEPS: u32 = 2_000_000;

fn main() -> Result<(), StartError> {
    // The first takes port 7223, the second the first free one of 7230 to 7299.
    let actor = Reporter::builder("actor").loss_name("squared error").start()?;
    let critic = Reporter::builder("critic").loss_name("squared error").start()?;
    for reporter in [&actor, &critic] {
        if let Some(address) = reporter.local_addr() {
            println!("curl -s http://{address}/v1/progress");
        }
    }
    thread::scope(|scope| {
        scope.spawn(|| train(&actor, 2.0));
        scope.spawn(|| train(&critic, 0.5));
    });
    Ok(())
}

/// Finds a number by gradient descent.
fn train(reporter: &Reporter, number: f64) {
    let mut guess = 0.0;
    for _ in 0..STEPS {
        let loss = reporter.time(|| {
            let error: f64 = guess - number;
            guess -= 1e-6 * error;
            error * error
        });
        if loss < 1e-9 {
            break;
        }
    }
    reporter.finish();
}
