//! Real Python frameworks in containers: the files are what anybody writes, and `exec` runs them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::Context;
use paceline_reporter::wire::State;
use paceline_system_tests::{Allocator, Bed, Job, frameworks, json_lines, until};
use serde_json::Value;

use crate::flowcon::{ensure_unlimited, growing};
use crate::orders::view;
use crate::sidecar::{read_status, with_host_programs};

/// A script of `sidecar/frameworks`, and what is to be read out of it.
#[derive(Debug)]
struct Script {
    /// The job, and the file names of its status and its truth.
    name: &'static str,
    /// The virtual environment that it runs in.
    environment: &'static str,
    command: &'static [&'static str],
    labels: &'static [(&'static str, &'static str)],
    /// What a loss that counts is the mean of.
    means: &'static [&'static str],
    /// How far a printed loss may be from the true one.
    within: f64,
}

/// Bars; its loss is acceptable from the start.
const KERAS: Script = Script {
    name: "keras",
    environment: "keras",
    command: &[
        "/venvs/keras/bin/python",
        "/scripts/keras_fit.py",
        "--epochs",
        "36",
        "--pace",
        "0.04",
    ],
    labels: &[("paceline.acceptable", "100")],
    means: &["epoch_so_far", "epoch"],
    within: 5e-5,
};
/// Lines.
const PYTORCH: Script = Script {
    name: "pytorch",
    environment: "torch",
    command: &["/venvs/torch/bin/python", "/scripts/torch_vae.py", "--epochs", "28"],
    labels: &[],
    means: &["step"],
    within: 5e-7,
};
/// TRADL gives a job less as soon as its loss is acceptable; with this `alpha`, even where the
/// machine has CPU left.
const POLICY: [&str; 8] = [
    "--policy",
    "tradl",
    "--param",
    "interval=2",
    "--param",
    "alpha=0.01",
    "--enforcement",
    "quota",
];

pub(crate) async fn keras_and_pytorch_are_managed_by_what_they_print(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let keras = bed.start(KERAS.job(&bed)?).await?;
    let pytorch = bed.start(PYTORCH.job(&bed)?).await?;
    let allocator = Allocator::run(&bed, &POLICY)?;
    until("Keras, whose loss is acceptable, is limited", || async {
        Ok((bed.limits(&keras).await?.host.nano_cpus > 0).then_some(()))
    })
    .await
    .with_context(|| allocator.said())?;
    for job in [&keras, &pytorch] {
        let code = bed.ended(job).await?;
        anyhow::ensure!(code == 0, "{job} ends with {code}: {}", bed.log(job).await?);
    }
    allocator.end().await?;
    for job in [&keras, &pytorch] {
        ensure_unlimited(&bed, job).await?;
    }
    KERAS.ensure_true(&bed)?;
    PYTORCH.ensure_true(&bed)
}

pub(crate) async fn keras_is_ordered_by_the_total_that_it_prints(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let keras = bed.start(KERAS.job(&bed)?).await?;
    let other = Job { args: vec!["--steps", "4000000"], ..growing() };
    let other = bed.start(other).await?;
    let policy = ["--policy", "paceline", "--param", "interval=2", "--param", "least=0.5"];
    let allocator = Allocator::run(&bed, &policy)?;
    let known = until("the work that Keras has left is known", || async {
        // Before the first look there is no answer.
        let view = view(&bed, KERAS.name).await.ok();
        Ok(view.filter(|view| view.work_left.is_some() && view.total_steps.is_some()))
    })
    .await
    .with_context(|| allocator.said())?;
    // 36 epochs of 12 batches.
    anyhow::ensure!(known.total_steps == Some(432) && known.ends_at.is_some(), "{known:?}");
    anyhow::ensure!(bed.ended(&keras).await? == 0, "{}", bed.log(&keras).await?);
    allocator.end().await?;
    ensure_unlimited(&bed, &other).await
}

impl Script {
    /// A container that has this machine's Python and nothing of ours but the sidecar.
    fn job(&self, bed: &Bed) -> anyhow::Result<Job> {
        let environments = frameworks().context("there are no frameworks")?;
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sidecar/frameworks");
        let python = base_of(&environments.join(self.environment))?;
        let mut host = with_host_programs();
        let binds = host.binds.get_or_insert_default();
        binds.push(format!("{}:/venvs:ro", environments.display()));
        binds.push(format!("{}:/scripts:ro", scripts.canonicalize()?.display()));
        binds.push(bed.bind());
        if python != Path::new("/usr") {
            binds.push(format!("{0}:{0}:ro", python.display()));
        }
        let env = [
            format!("PACELINE_STATUS_FILE=/bed/{}.json", self.name),
            format!("TRUTH=/bed/{}.truth", self.name),
            "HOME=/tmp".to_owned(),
            "PYTHONDONTWRITEBYTECODE=1".to_owned(),
            "OMP_NUM_THREADS=1".to_owned(),
        ];
        Ok(Job {
            name: self.name,
            entrypoint: [&["/paceline-sidecar", "exec", "--"], self.command].concat(),
            labels: self.labels.to_vec(),
            env: env.to_vec(),
            host,
            ..Job::default()
        })
    }

    /// Whether what was reported is what the script itself knows: as many losses, and their sum.
    fn ensure_true(&self, bed: &Bed) -> anyhow::Result<()> {
        let truth = json_lines(&bed.file(&format!("{}.truth", self.name)))?;
        let is_ours = |row: &&Value| {
            row.get("phase") == Some(&"train".into())
                && self.means.iter().any(|mean| row.get("mean") == Some(&(*mean).into()))
        };
        let losses = truth.iter().filter(is_ours).filter_map(|row| row.get("loss")?.as_f64());
        let losses: Vec<f64> = losses.collect();
        let told = read_status(&bed.file(&format!("{}.json", self.name)))?;
        let told = told.context("there is no status file")?;
        let count = u32::try_from(told.eval.count)?;
        let error = (told.eval.sum - losses.iter().sum::<f64>()).abs();
        anyhow::ensure!(told.state == State::Finished && told.rejected == 0, "{told:?}");
        anyhow::ensure!(
            usize::try_from(count)? == losses.len() && count > 100,
            "{} losses are {told:?}",
            losses.len()
        );
        anyhow::ensure!(error <= self.within * f64::from(count), "{error} off: {told:?}");
        anyhow::ensure!(told.batch_latency.count > 50, "{:?}", told.batch_latency);
        Ok(())
    }
}

/// Where the Python lies that a virtual environment borrows.
fn base_of(environment: &Path) -> anyhow::Result<PathBuf> {
    let mut command = Command::new(environment.join("bin/python"));
    let printed = command.args(["-c", "import sys; print(sys.base_prefix)"]).output()?;
    Ok(PathBuf::from(String::from_utf8(printed.stdout)?.trim()))
}
