//! The program as people run it, with the stem that makes less work of it.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A folder with 10 images of CIFAR-10's form to train on, and 2 to test on.
fn images() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let names = (1..=5).map(|number| format!("data_batch_{number}.bin"));
    for (name, shade) in names.chain(["test_batch.bin".to_owned()]).zip(1_u8..) {
        let image = |label: u8| {
            let pixels =
                (0..3072_u32).map(move |at| (at * u32::from(shade + label)).to_le_bytes()[0]);
            [label].into_iter().chain(pixels)
        };
        fs::write(folder.path().join(name), image(shade).chain(image(0)).collect::<Vec<_>>())
            .unwrap();
    }
    folder
}

fn resnet50(data: &Path, line: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_resnet50"));
    command.args(["--stem", "imagenet", "--threads", "1", "--batch-size", "2"]).args(line);
    command.args(["--log-interval", "1"]).env("PACELINE_DATA", data);
    command.env("PACELINE_LISTEN", "127.0.0.1:0").env("PACELINE_HIDE_ADDRESS", "1");
    command.env_remove("PACELINE_CHECKPOINTS").env_remove("PACELINE_BATCH_LATENCY");
    command
}

fn succeeds(output: Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn resume_after_sigterm_is_exact_and_serves_inference() {
    let (data, folder) = (images(), tempfile::tempdir().unwrap());
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [whole, cut, saves, weights] = ["whole", "cut", "", "resnet50.safetensors"].map(path);
    let run = |line: &[&str]| succeeds(resnet50(data.path(), line).output().unwrap());
    let said = run(&["--steps", "8", "--losses", &whole]);
    assert!(said.contains("10 images to train on, 2 to test on; 8 steps of 2 images"), "{said}");
    assert!(said.contains("Test set: Average loss: "), "{said}");

    let line = ["--steps", "8", "--losses", &cut, "--checkpoints", &saves];
    let mut child = resnet50(data.path(), &line).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(said.any(|line| line.ends_with("Step: 2")));
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert!(said.last().unwrap().starts_with("finished: steps="));
    assert!(child.wait().unwrap().success());
    assert!(fs::read_to_string(&cut).unwrap().lines().count() < 8);
    let said = run(&[&line[..], &["--resume"]].concat());
    assert!(said.contains("resumed at step "), "{said}");
    assert_eq!(fs::read_to_string(&whole).unwrap(), fs::read_to_string(&cut).unwrap());

    let said = run(&["--inference", "--steps", "3", "--weights", &weights]);
    assert_eq!(said.matches("\tqueue: 0\n").count(), 3, "{said}");
    assert!(said.contains("finished: batches=3 mean_latency="), "{said}");
}

#[test]
fn fast_batches_wait_and_miss_target() {
    let data = images();
    let line = ["--inference", "--steps", "4", "--arrivals", "500", "--target-latency", "0.000001"];
    let said = succeeds(resnet50(data.path(), &line).output().unwrap());
    let queues = said.lines().filter_map(|line| line.split_once("queue: ")?.1.parse::<u64>().ok());
    assert!(queues.clone().is_sorted() && queues.min() > Some(0), "{said}");
    assert!(said.contains(" within_target=0"), "{said}");
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let data = images();
    let missing = data.path().join("test_batch.bin");
    let refused = |line: &[&str], what: &str| {
        let output = resnet50(data.path(), line).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains(what), "{said}");
    };
    refused(&["--arrivals", "5"], "--inference");
    refused(&["--inference", "--arrivals", "0"], "expected a number above 0, and at most 1000");
    refused(&["--inference", "--target-latency=-1"], "expected a number of seconds above 0");
    refused(&["--inference", "--resume", "--checkpoints", "/"], "cannot be used with");
    let weights = missing.to_str().unwrap();
    refused(
        &["--inference", "--weights", weights],
        "test_batch.bin does not hold this model's weights",
    );
    fs::remove_file(&missing).unwrap();
    refused(&[], "test_batch.bin: No such file");
}
