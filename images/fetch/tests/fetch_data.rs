//! The program, run on folders of its own.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Writes ten black images, labelled 0 to 9, as a data set that has test images only.
fn write_images(folder: &Path) {
    fs::create_dir_all(folder).expect("a new folder");
    let mut images = vec![0, 0, 8, 3, 0, 0, 0, 10, 0, 0, 0, 28, 0, 0, 0, 28];
    images.extend([0; 7840]);
    fs::write(folder.join("t10k-images-idx3-ubyte"), images).expect("a writable folder");
    let mut labels = vec![0, 0, 8, 1, 0, 0, 0, 10];
    labels.extend(0..10);
    fs::write(folder.join("t10k-labels-idx1-ubyte"), labels).expect("a writable folder");
}

fn fetch_data(variable: &Path, arguments: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fetch-data"));
    if !arguments.is_empty() {
        command.arg("--data");
    }
    command.args(arguments).env("PACELINE_DATA", variable).output().expect("the program starts")
}

#[test]
fn argument_takes_precedence_over_variable() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let [argument, variable] = ["argument", "variable"].map(|name| root.join(name));
    write_images(&argument);
    write_images(&variable);
    for (arguments, folder) in [(vec![argument.as_path()], &argument), (vec![], &variable)] {
        let output = fetch_data(&variable, &arguments);
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), folder.to_str().unwrap());
        let notes = String::from_utf8_lossy(&output.stderr);
        let said = "custom IDX t10k, split 9:1: 9 images to train on, 1 to test on\n";
        assert_eq!(notes, said);
    }
}

#[test]
fn folder_without_images_is_refused_by_name() {
    let root = tempfile::tempdir().unwrap();
    let output = fetch_data(root.path(), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("t10k-images-idx3-ubyte"));
}
