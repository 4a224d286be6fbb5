//! Real Python frameworks in containers: the files are what anybody writes, and `exec` runs them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::Context;
use paceline_reporter::wire::State;
use paceline_system_tests::{Allocator, Bed, Job, frameworks, json_lines, until};
use serde_json::Value;

use crate::flowcon::ensure_unlimited;
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
/// A bar for each epoch.
const TQDM: Script = Script {
    name: "tqdm",
    environment: "torch",
    command: &[
        "/venvs/torch/bin/python",
        "/scripts/tqdm_loop.py",
        "--epochs",
        "30",
        "--pace",
        "0.05",
    ],
    labels: &[],
    means: &["step"],
    within: 5e-3,
};
/// One bar of all steps, and losses beside it.
const HUGGING_FACE: Script = Script {
    name: "hugging-face",
    environment: "torch",
    command: &[
        "/venvs/torch/bin/python",
        "/scripts/hf_trainer.py",
        "--epochs",
        "20",
        "--pace",
        "0.1",
    ],
    labels: &[],
    means: &["interval"],
    within: 5e-4,
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

pub(crate) async fn python_jobs_are_ordered_by_the_totals_they_print(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    // Keras has 36 epochs of 12 batches, tqdm 30 of 20; the trainer's own bar has 20 epochs of 12 steps.
    let all = [(&KERAS, 432), (&TQDM, 600), (&HUGGING_FACE, 240)];
    let mut jobs = Vec::new();
    for (script, _) in all {
        jobs.push(bed.start(script.job(&bed)?).await?);
    }
    let policy = ["--policy", "paceline", "--param", "interval=2", "--param", "least=0.5"];
    let allocator = Allocator::run(&bed, &policy)?;
    for (script, total) in all {
        let ordered = until("the job has its place by the work that it has left", || async {
            // Before the first sample there is no answer.
            let view = view(&bed, script.name).await.ok();
            Ok(view
                .filter(|view| view.why.as_ref().is_some_and(|why| why.contains("of work left"))))
        })
        .await
        .with_context(|| allocator.said())?;
        let is_known = ordered.work_left.is_some() && ordered.ends_at.is_some();
        anyhow::ensure!(is_known && ordered.total_steps == Some(total), "{ordered:?}");
    }
    for job in &jobs {
        anyhow::ensure!(bed.ended(job).await? == 0, "{}", bed.log(job).await?);
    }
    allocator.end().await?;
    for job in &jobs {
        ensure_unlimited(&bed, job).await?;
    }
    Ok(())
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
