//! The reporter in a training loop of tch: a straight line is fitted by Adam.
//!
//! It needs libtorch, as the workloads do; `images/libtorch.sh` finds or fetches it.
//!
//! ```console
//! $ export LIBTORCH=$(images/libtorch.sh | tail -n 1); export LD_LIBRARY_PATH=$LIBTORCH/lib
//! $ cd images && cargo run --release --package paceline-torch --example tch_loop
//! ```

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;

use paceline_reporter::{Reason, Reporter};
use tch::nn::{self, Adam, Module, OptimizerConfig, VarStore};
use tch::{Device, Kind, Reduction, Tensor};

const STEPS: u64 = 2_000;

fn main() -> Result<(), Box<dyn Error>> {
    let store = VarStore::new(Device::cuda_if_available());
    let line = nn::linear(store.root() / "line", 1, 1, nn::LinearConfig::default());
    let mut optimizer = Adam::default().build(&store, 5e-2)?;
    let x = Tensor::rand([1024, 1], (Kind::Float, store.device()));
    let y = &x * 3.0 + 1.0;

    let job = Reporter::builder("tch-loop").loss_name("mean squared error").total_steps(STEPS);
    let reporter = job.acceptable(1e-2).objective(1e-4).stop_at_objective().from_env().start()?;
    let folder = std::env::temp_dir().join(format!("paceline-tch-loop-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;

    for step in 1..=STEPS {
        let batch = reporter.batch();
        let loss = line.forward(&x).mse_loss(&y, Reduction::Mean);
        optimizer.backward_step(&loss);
        // On a GPU this does not wait for the device.
        batch.tensor(&loss);

        if let Some(request) = reporter.checkpoint_requested() {
            let kept = request.reason() == Reason::Keep;
            let path = folder.join(if kept { "best.ot" } else { "latest.ot" });
            request.save(|_| store.save(&path).map(|()| &path))?;
            println!("step {step}: saved {}", path.display());
        }
        if reporter.should_stop() {
            println!("step {step}: the objective is reached");
            break;
        }
    }
    reporter.finish();
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
