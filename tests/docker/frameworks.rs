//! Real Python frameworks in containers: ordinary scripts, run by `paceline-sidecar exec`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::Context;
use paceline_reporter::wire::State;
use paceline_system_tests::{Allocator, Job, TestEnv, frameworks, json_lines, until};
use serde_json::Value;

use crate::flowcon::ensure_unlimited;
use crate::orders::view;
use crate::sidecar::{read_status, with_host_programs};

/// A script of `sidecar/frameworks`, and what the sidecar must read from its output.
#[derive(Debug)]
struct Script {
    /// The job's name, also that of its status file and of its file of true losses.
    name: &'static str,
    /// The virtual environment that it runs in.
    environment: &'static str,
    /// The options of the sidecar.
    options: &'static [&'static str],
    command: &'static [&'static str],
    labels: &'static [(&'static str, &'static str)],
    /// The kinds of mean that count as a loss, as the script calls them.
    means: &'static [&'static str],
    /// How far a printed loss may be from the true one.
    within: f64,
}

/// It draws bars. Its loss is acceptable from the start.
const KERAS: Script = Script {
    name: "keras",
    environment: "keras",
    options: &[],
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
/// It prints lines that count samples, so it needs the size of a batch for the times of batches.
const PYTORCH: Script = Script {
    name: "pytorch",
    environment: "torch",
    options: &["--batch-size", "32"],
    command: &["/venvs/torch/bin/python", "/scripts/torch_vae.py", "--epochs", "28"],
    labels: &[],
    means: &["step"],
    within: 5e-7,
};
/// It draws a bar for each epoch.
const TQDM: Script = Script {
    name: "tqdm",
    environment: "torch",
    options: &[],
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
/// It draws one bar for all steps, and prints losses beside it.
const HUGGING_FACE: Script = Script {
    name: "hugging-face",
    environment: "torch",
    options: &[],
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
/// TRADL limits a job as soon as its loss is acceptable: with this `alpha` even when the machine
/// has CPU left.
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

pub(crate) async fn keras_and_pytorch_are_managed_by_their_output(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let keras = env.start(KERAS.job(&env)?).await?;
    let pytorch = env.start(PYTORCH.job(&env)?).await?;
    let allocator = Allocator::run(&env, &POLICY)?;
    until("Keras, whose loss is acceptable, is limited", || async {
        Ok(env.limits(&keras).await?.kernel.and_then(|quota| quota.quota).map(drop))
    })
    .await
    .with_context(|| allocator.said())?;
    for job in [&keras, &pytorch] {
        let code = env.ended(job).await?;
        anyhow::ensure!(code == 0, "{job} ends with {code}: {}", env.log(job).await?);
    }
    allocator.end().await?;
    for job in [&keras, &pytorch] {
        ensure_unlimited(&env, job).await?;
    }
    KERAS.ensure_true(&env)?;
    PYTORCH.ensure_true(&env)
}

pub(crate) async fn python_jobs_are_ordered_by_the_totals_they_print(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    // Keras has 36 epochs of 12 batches, tqdm 30 of 20; the trainer's own bar has 20 epochs of 12 steps.
    let all = [(&KERAS, 432), (&TQDM, 600), (&HUGGING_FACE, 240)];
    let mut jobs = Vec::new();
    for (script, _) in all {
        jobs.push(env.start(script.job(&env)?).await?);
    }
    let policy = ["--policy", "paceline", "--param", "interval=2", "--param", "least=0.5"];
    let allocator = Allocator::run(&env, &policy)?;
    for (script, total) in all {
        let ordered = until("the job has its place by the work that it has left", || async {
            // The endpoint answers only after the first sample.
            let view = view(&env, script.name).await.ok();
            Ok(view
                .filter(|view| view.why.as_ref().is_some_and(|why| why.contains("of work left"))))
        })
        .await
        .with_context(|| allocator.said())?;
        let is_known = ordered.work_left.is_some() && ordered.ends_at.is_some();
        anyhow::ensure!(is_known && ordered.total_steps == Some(total), "{ordered:?}");
    }
    for job in &jobs {
        anyhow::ensure!(env.ended(job).await? == 0, "{}", env.log(job).await?);
    }
    allocator.end().await?;
    for job in &jobs {
        ensure_unlimited(&env, job).await?;
    }
    Ok(())
}

impl Script {
    /// A container with this machine's Python and, of Paceline, only the sidecar.
    fn job(&self, env: &TestEnv) -> anyhow::Result<Job> {
        let environments = frameworks().context("frameworks are installed")?;
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sidecar/frameworks");
        let python = base_of(&environments.join(self.environment))?;
        let mut host = with_host_programs();
        let binds = host.binds.get_or_insert_default();
        binds.push(format!("{}:/venvs:ro", environments.display()));
        binds.push(format!("{}:/scripts:ro", scripts.canonicalize()?.display()));
        binds.push(env.bind());
        if python != Path::new("/usr") {
            binds.push(format!("{0}:{0}:ro", python.display()));
        }
        let env = [
            format!("PACELINE_STATUS_FILE=/files/{}.json", self.name),
            format!("TRUTH=/files/{}.truth", self.name),
            "HOME=/tmp".to_owned(),
            "PYTHONDONTWRITEBYTECODE=1".to_owned(),
            "OMP_NUM_THREADS=1".to_owned(),
        ];
        Ok(Job {
            name: self.name,
            entrypoint: [&["/paceline-sidecar", "exec"], self.options, &["--"], self.command]
                .concat(),
            labels: self.labels.to_vec(),
            env: env.to_vec(),
            host,
            ..Job::default()
        })
    }

    /// Fails unless the reported losses are the script's own: the same number and the same sum.
    fn ensure_true(&self, env: &TestEnv) -> anyhow::Result<()> {
        let truth = json_lines(&env.file(&format!("{}.truth", self.name)))?;
        let is_ours = |row: &&Value| {
            row.get("phase") == Some(&"train".into())
                && self.means.iter().any(|mean| row.get("mean") == Some(&(*mean).into()))
        };
        let losses = truth.iter().filter(is_ours).filter_map(|row| row.get("loss")?.as_f64());
        let losses: Vec<f64> = losses.collect();
        let status = read_status(&env.file(&format!("{}.json", self.name)))?;
        let status = status.context("the status file exists")?;
        let count = u32::try_from(status.eval.count)?;
        let error = (status.eval.sum - losses.iter().sum::<f64>()).abs();
        anyhow::ensure!(status.state == State::Finished && status.rejected == 0, "{status:?}");
        anyhow::ensure!(
            usize::try_from(count)? == losses.len() && count > 100,
            "{} losses are {status:?}",
            losses.len()
        );
        anyhow::ensure!(error <= self.within * f64::from(count), "{error} off: {status:?}");
        anyhow::ensure!(status.batch_latency.count > 50, "{:?}", status.batch_latency);
        Ok(())
    }
}

/// The folder of the Python installation that a virtual environment uses.
pub(crate) fn base_of(environment: &Path) -> anyhow::Result<PathBuf> {
    let mut command = Command::new(environment.join("bin/python"));
    let printed = command.args(["-c", "import sys; print(sys.base_prefix)"]).output()?;
    Ok(PathBuf::from(String::from_utf8(printed.stdout)?.trim()))
}
