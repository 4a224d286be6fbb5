//! A workload's program, in a folder of its own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::rc::Rc;

use paceline_workload::Checkpoint;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A workload's program, in a folder of its own with 60 images to train on and a few to test on.
#[derive(Clone, Debug)]
pub struct Program {
    name: &'static str,
    binary: &'static str,
    folder: Rc<TempDir>,
    images: Rc<TempDir>,
    listen: Option<String>,
    little_space: bool,
}

/// How a program ended.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    /// Its exit code, unless a signal ended it.
    pub(crate) code: Option<i32>,
    /// What it printed.
    pub(crate) output: String,
    /// What it printed on standard error.
    pub(crate) errors: String,
}

impl Ended {
    /// Asserts that it succeeded and returns what it printed.
    pub(crate) fn succeeds(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.errors);
        self.output
    }
}

impl Program {
    /// The program of a workload.
    pub fn new(name: &'static str, binary: &'static str) -> Self {
        let [folder, images] = [(), ()].map(|()| Rc::new(tempfile::tempdir().unwrap()));
        write_images(images.path());
        Self { name, binary, folder, images, listen: None, little_space: false }
    }

    /// The same program, with files limited to 64 KiB.
    pub(crate) fn with_little_space(&self) -> Self {
        Self { little_space: true, ..self.clone() }
    }

    /// The same program, with its endpoint at a Unix socket.
    pub(crate) fn listening(self, socket: &str) -> Self {
        Self { listen: Some(format!("unix:{socket}")), ..self }
    }

    /// The path of this name in the program's folder.
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// The name of its latest checkpoint.
    pub(crate) fn file(&self) -> String {
        format!("{}.safetensors", self.name)
    }

    /// The name of the checkpoint that it keeps.
    pub(crate) fn kept(&self) -> String {
        format!("{}-acceptable.safetensors", self.name)
    }

    /// Its latest checkpoint.
    pub(crate) fn saved(&self) -> Checkpoint {
        Checkpoint::read(self.path(&self.file()).as_ref()).unwrap()
    }

    /// The files in its folder, those that are not complete included.
    pub(crate) fn checkpoints(&self) -> Vec<String> {
        let names = fs::read_dir(self.folder.path()).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Runs it until it ends.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        ended(self.command(arguments).output().unwrap())
    }

    /// Ends it by SIGTERM after that many steps and returns the number of steps made.
    pub(crate) fn interrupted(&self, arguments: &[&str], step: usize) -> usize {
        let (child, before) = self.until(arguments, step);
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        let after = ended(child.wait_with_output().unwrap()).succeeds();
        assert!(after.contains("finished: steps="), "{after}");
        before + after.lines().filter(|line| line.starts_with("Train")).count()
    }

    /// Kills it after that many steps.
    pub(crate) fn killed(&self, arguments: &[&str], step: usize) {
        let (mut child, _) = self.until(arguments, step);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Does something after that many steps, then ends the program.
    pub(crate) fn meanwhile<T>(
        &self,
        arguments: &[&str],
        step: usize,
        work: impl FnOnce() -> T,
    ) -> T {
        let (mut child, _) = self.until(arguments, step);
        // A full pipe would stop the program, so it is read meanwhile.
        let mut output = child.stdout.take().unwrap();
        let reader = std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        let result = work();
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        ended(child.wait_with_output().unwrap()).succeeds();
        reader.join().unwrap().unwrap();
        result
    }

    /// Starts it and reads its output, byte by byte, up to that step.
    fn until(&self, arguments: &[&str], step: usize) -> (Child, usize) {
        let mut command = self.command(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let end = format!("Step: {step}");
        // A buffered reader would take more out of the pipe than it returns.
        let output = BufReader::with_capacity(1, child.stdout.as_mut().unwrap());
        let lines = output.lines().map(Result::unwrap);
        let mut seen = 0;
        for line in lines.filter(|line| line.starts_with("Train")) {
            seen += 1;
            if line.ends_with(&end) {
                return (child, seen);
            }
        }
        panic!("the program ended before {end}: {:?}", ended(child.wait_with_output().unwrap()));
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = if self.little_space {
            // The shell's blocks have 512 bytes or 1 KiB. A program that ignores the signal gets
            // an error instead.
            let mut shell = Command::new("sh");
            shell.args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\"", self.binary]);
            shell
        } else {
            Command::new(self.binary)
        };
        if !arguments.contains(&"--batch-size") {
            command.args(["--batch-size", "4"]);
        }
        command
            .args(["--log-interval", "1"])
            .args(arguments)
            .env("PACELINE_DATA", self.images.path())
            .env("PACELINE_LISTEN", self.listen.as_deref().unwrap_or("127.0.0.1:0"))
            .env("PACELINE_HIDE_ADDRESS", "1")
            .env_remove("PACELINE_CHECKPOINTS");
        command
    }
}

fn ended(output: Output) -> Ended {
    let [text, errors] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    Ended { code: output.status.code(), output: text, errors }
}

/// Meaningless images, each one different.
fn write_images(folder: &Path) {
    for (prefix, count) in [("train", 60_u8), ("t10k", 10)] {
        let pixels = (0..count).flat_map(|image| {
            (0..784_u32).map(move |pixel| {
                let [.., grey] = (pixel * (u32::from(image) + 3) / 7).to_be_bytes();
                grey
            })
        });
        let labels = (0..count).map(|image| image % 10);
        let images = [0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, 28, 0, 0, 0, 28];
        write(folder, &format!("{prefix}-images-idx3-ubyte"), images.into_iter().chain(pixels));
        let header = [0, 0, 8, 1, 0, 0, 0, count];
        write(folder, &format!("{prefix}-labels-idx1-ubyte"), header.into_iter().chain(labels));
    }
}

fn write(folder: &Path, name: &str, bytes: impl Iterator<Item = u8>) {
    fs::write(folder.join(name), bytes.collect::<Vec<_>>()).unwrap();
}
