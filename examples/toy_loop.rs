//! A training loop with the reporter in it: fits a line to a million points by gradient descent.
//!
//! ```console
//! $ cargo run --example toy_loop
//! ```

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;

use paceline_reporter::Reporter;

const POINTS: u32 = 1_000_000;
const STEPS: u32 = 400;
const LEARNING_RATE: f64 = 0.05;

fn main() -> Result<(), Box<dyn Error>> {
    let points: Vec<(f64, f64)> = (0..POINTS).map(point).collect();
    let (mut slope, mut offset) = (0.0, 0.0);

    let job = Reporter::builder("toy").loss_name("mean squared error").dataset("a noisy line");
    let reporter = job.acceptable(0.1).objective(0.085).total_steps(STEPS.into());
    let reporter = reporter.from_env().start()?;
    if let Some(address) = reporter.local_addr() {
        println!("look at it: curl -s http://{address}/v1/progress");
    }

    for step in 1..=STEPS {
        let batch = reporter.batch();
        let (mut loss, mut by_slope, mut by_offset) = (0.0, 0.0, 0.0);
        for (x, y) in &points {
            let error = slope * x + offset - y;
            loss += error * error / f64::from(POINTS);
            by_slope += 2.0 * error * x / f64::from(POINTS);
            by_offset += 2.0 * error / f64::from(POINTS);
        }
        slope -= LEARNING_RATE * by_slope;
        offset -= LEARNING_RATE * by_offset;
        batch.loss(loss);
        if step % 50 == 0 {
            println!("step {step}: loss {loss:.4}, y = {slope:.3} x + {offset:.3}");
        }
    }

    reporter.finish();
    println!("done; press Enter to end");
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}

/// A point near y = 3 x + 1 with x from 0 to 2. The noise is uniform from -0.5 to 0.5, so no line
/// has a loss much below its variance of 1/12.
fn point(number: u32) -> (f64, f64) {
    let x = 2.0 * f64::from(number) / f64::from(POINTS);
    // Consecutive multiples of the golden ratio's fraction spread evenly.
    let noise = (f64::from(number) * 0.618_033_988_749_894_9).fract() - 0.5;
    (x, 3.0 * x + 1.0 + noise)
}
