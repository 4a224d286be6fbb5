//! The character model's program as people run it.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::fs;
use std::process::{Command, Output};

fn gru(line: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gru"));
    command.args(line).env("PACELINE_LISTEN", "127.0.0.1:0").env("PACELINE_HIDE_ADDRESS", "1");
    command.env_remove("PACELINE_CHECKPOINTS");
    command.output().unwrap()
}

#[test]
fn epoch_prints_loss_and_sample_and_resume_is_exact() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [text, whole, cut] = ["text", "whole", "cut"].map(path);
    fs::write(&text, "All work and no play.\n".repeat(100)).unwrap();
    let line = ["text", "--text", &text, "--threads", "1", "--batch-size", "10", "--sample", "30"];
    let run = |more: &[&str]| {
        let output = gru(&[&line[..], more].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let said = run(&["--steps", "4", "--losses", &whole]);
    assert!(
        said.starts_with("text: 1980 characters to train on, 14 distinct; 4 steps of 10 windows"),
        "{said}"
    );
    assert_eq!(said.matches("====> Test set loss: ").count(), 2, "{said}");

    let saves = ["--losses", &cut, "--checkpoints", folder.path().to_str().unwrap()];
    run(&[&saves[..], &["--steps", "3"]].concat());
    run(&[&saves[..], &["--steps", "4", "--resume"]].concat());
    assert_eq!(fs::read_to_string(whole).unwrap(), fs::read_to_string(cut).unwrap());
}

#[test]
fn missing_or_invalid_text_file_is_refused_in_one_line() {
    let output = gru(&["text", "--text", "/no/such"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("gru: cannot train on /no/such: "), "{said}");
    assert_eq!(said.lines().count(), 1);
}
