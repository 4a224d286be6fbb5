//! What every workload must do, shown with its real program on a tiny data set: go on exactly after
//! SIGTERM, keep the checkpoint before when a new one cannot be written, and refuse bad input.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a test fails by a panic"
)]

mod program;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use paceline_workload::Checkpoint;

pub use crate::program::Program;

/// Enough steps that a signal always finds the program at work.
const STEPS: &str = "150";

/// After SIGTERM and `--resume`, the losses are those of a run that was never interrupted.
pub fn resumes_exactly(program: &Program) {
    let (whole, cut) = (program.path("whole"), program.path("cut"));
    let line = ["--steps", STEPS, "--threads", "1", "--losses"];
    program.run(&[&line[..], &[&whole]].concat()).succeeds();

    let saves = ["--checkpoints", &program.path("")];
    let line = [&line[..], &[&cut], &saves].concat();
    let first = program.interrupted(&line, 13);
    assert!((13..150).contains(&first), "it was to be interrupted: {first}");
    assert_eq!(fs::read_to_string(&cut).unwrap().lines().count(), first);
    assert_eq!(program.saved().metadata().step, u64::try_from(first).unwrap());
    let said = program.run(&[&line[..], &["--resume"]].concat()).succeeds();
    assert!(said.contains(&format!("resumed at step {first} from")), "{said}");

    let [whole, cut] = [whole, cut].map(|path| fs::read_to_string(path).unwrap());
    assert_eq!(whole.lines().count(), 150);
    assert!(whole == cut, "resumed after {first} steps, it went another way");
}

/// A checkpoint that cannot be written, for a full disk or because the program is killed, leaves the
/// one before as it was, and nothing else after the next start.
pub fn keeps_the_checkpoint_before(program: &Program) {
    let saves = ["--checkpoints", &program.path("")];
    program.run(&[&saves[..], &["--steps", "3"]].concat()).succeeds();
    let before = fs::read(program.path(&program.file())).unwrap();

    let more = [&saves[..], &["--resume", "--steps", "6"]].concat();
    let failed = program.with_little_space().run(&more);
    assert_eq!(failed.code, Some(1), "{}", failed.errors);
    assert!(failed.errors.contains("no checkpoint can be written to"), "{}", failed.errors);
    assert!(fs::read(program.path(&program.file())).unwrap() == before, "it was replaced");
    assert_eq!(program.checkpoints(), [program.file()]);

    for _ in 0..3 {
        program.killed(&[&saves[..], &["--steps", STEPS, "--checkpoint-every", "1"]].concat(), 8);
        assert!(program.saved().metadata().step >= 7);
    }
    program.run(&[&saves[..], &["--resume", "--steps", "1"]].concat()).succeeds();
    assert_eq!(program.checkpoints(), [program.file()]);
}

/// What cannot be used is refused before training, with one line that names it and exit code 2.
pub fn refuses_bad_input(program: &Program) {
    let refused = |line: &[&str], what: &str| {
        let ended = program.run(line);
        assert_eq!(ended.code, Some(2), "{line:?}: {}", ended.errors);
        assert_eq!(ended.errors.lines().count(), 1, "{}", ended.errors);
        assert!(ended.errors.contains(what), "{}", ended.errors);
        assert_eq!(ended.output.lines().filter(|line| line.starts_with("Train")).count(), 0);
    };
    let folder = program.path("");
    refused(&["--no-such-option"], "unexpected argument '--no-such-option'");
    refused(&["--data", "/no/such"], "/no/such is not a folder of images");
    refused(&["--checkpoints", "/no/such"], "no checkpoint can be written to /no/such");
    refused(&["--losses", "/no/such/file"], "no losses can be written to /no/such/file");
    let line = ["--steps", "2", "--checkpoints", &folder];
    program.run(&line).succeeds();
    let again = [&line[..], &["--resume"]].concat();
    refused(&[&again[..], &["--seed", "2"]].concat(), "another seed: 1, not 2");
    refused(&[&again[..], &["--batch-size", "5"]].concat(), "another batch size: 4, not 5");
    let path = program.path(&program.file());
    let half = fs::read(&path).unwrap();
    fs::write(&path, half.get(..half.len() / 2).unwrap()).unwrap();
    refused(&again, "is no whole checkpoint");
    fs::remove_file(&path).unwrap();
    let ended = program.run(&again);
    assert!(ended.errors.contains("There is no checkpoint yet"), "{}", ended.errors);
    ended.succeeds();
}

/// A request is answered: with a checkpoint, or with the reason why there is none. What is reached at
/// the acceptable loss is kept.
pub fn answers_requests(program: &Program) {
    let saves = ["--steps", "1000000", "--target-acceptable", "1000000"];
    let socket = program.path("socket");
    let program = &program.clone().listening(&socket);
    let ask = || {
        say(&socket, "POST /v1/checkpoint");
        let answered =
            |it: &String| it.contains("\"requested\":2") && it.contains("\"answered\":2");
        let mut readings = (0..3000).map(|_| {
            thread::park_timeout(Duration::from_millis(10));
            say(&socket, "GET /v1/progress")
        });
        readings.find(answered).unwrap()
    };
    let said = program.meanwhile(&saves, 8, ask);
    assert!(said.contains("this run keeps no checkpoints"), "{said}");

    let said =
        program.meanwhile(&[&saves[..], &["--checkpoints", &program.path("")]].concat(), 8, ask);
    assert!(said.contains("\"saved\":2") && said.contains("\"error\":null"), "{said}");
    let kept = Checkpoint::read(program.path(&program.kept()).as_ref()).unwrap();
    assert!(kept.metadata().step >= 5 && kept.metadata().loss.is_some());
    assert!(program.saved().metadata().step > kept.metadata().step);
}

fn say(socket: &str, request: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(format!("{request} HTTP/1.0\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
