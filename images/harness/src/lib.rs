//! What every workload must do, shown with its real program on a tiny data set: resume exactly after
//! SIGTERM, keep the previous checkpoint when a new one cannot be written, and refuse bad input.

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

/// The tests of a workload's program, by its name and its path. With `data`, it also reads images.
#[macro_export]
macro_rules! workload_tests {
    ($name:literal, $binary:expr) => {
        fn program() -> $crate::Program {
            $crate::Program::new($name, $binary)
        }

        #[test]
        fn sigterm_then_resume_has_same_losses() {
            $crate::resumes_exactly(&program());
        }

        #[test]
        fn full_disk_or_kill_keeps_previous_checkpoint() {
            $crate::keeps_the_checkpoint_before(&program());
        }

        #[test]
        fn checkpoint_is_written_on_request_and_at_acceptable_loss() {
            $crate::answers_requests(&program());
        }
    };
    ($name:literal, $binary:expr, data) => {
        $crate::workload_tests!($name, $binary);

        #[test]
        fn bad_input_is_refused_in_one_line() {
            $crate::refuses_bad_input(&program());
        }
    };
}

/// Enough steps that the program is still training when a signal arrives.
const STEPS: &str = "150";

/// After SIGTERM and `--resume`, the losses are those of a run that was never interrupted.
pub fn resumes_exactly(program: &Program) {
    let (whole, cut) = (program.path("whole"), program.path("cut"));
    let line = ["--steps", STEPS, "--threads", "1", "--losses"];
    program.run(&[&line[..], &[&whole]].concat()).succeeds();

    let saves = ["--checkpoints", &program.path("")];
    let line = [&line[..], &[&cut], &saves].concat();
    let first = program.interrupted(&line, 13);
    assert!(
        (13..150).contains(&first),
        "expected an interruption before the end, not after {first} steps"
    );
    assert_eq!(fs::read_to_string(&cut).unwrap().lines().count(), first);
    assert_eq!(program.saved().metadata().step, u64::try_from(first).unwrap());
    let said = program.run(&[&line[..], &["--resume"]].concat()).succeeds();
    assert!(said.contains(&format!("resumed at step {first} from")), "{said}");

    let [whole, cut] = [whole, cut].map(|path| fs::read_to_string(path).unwrap());
    assert_eq!(whole.lines().count(), 150);
    assert!(whole == cut, "other losses after a resume at step {first}");
}

/// A checkpoint that cannot be written leaves the previous one as it was. The reason may be a full
/// disk or a killed program. The next start removes what is left of it.
pub fn keeps_the_checkpoint_before(program: &Program) {
    let saves = ["--checkpoints", &program.path("")];
    program.run(&[&saves[..], &["--steps", "3"]].concat()).succeeds();
    let before = fs::read(program.path(&program.file())).unwrap();

    let more = [&saves[..], &["--resume", "--steps", "6"]].concat();
    let failed = program.with_little_space().run(&more);
    assert_eq!(failed.code, Some(1), "{}", failed.errors);
    assert!(failed.errors.contains("cannot write a checkpoint to"), "{}", failed.errors);
    assert!(
        fs::read(program.path(&program.file())).unwrap() == before,
        "the checkpoint was replaced"
    );
    assert_eq!(program.checkpoints(), [program.file()]);

    for _ in 0..3 {
        program.killed(&[&saves[..], &["--steps", STEPS, "--checkpoint-every", "1"]].concat(), 8);
        assert!(program.saved().metadata().step >= 7);
    }
    program.run(&[&saves[..], &["--resume", "--steps", "1"]].concat()).succeeds();
    assert_eq!(program.checkpoints(), [program.file()]);
}

/// Bad input is refused before training, with one line that names it and exit code 2.
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
    refused(&["--checkpoints", "/no/such"], "cannot write a checkpoint to /no/such");
    refused(&["--losses", "/no/such/file"], "cannot write losses to /no/such/file");
    let line = ["--steps", "2", "--checkpoints", &folder];
    program.run(&line).succeeds();
    let again = [&line[..], &["--resume"]].concat();
    refused(&[&again[..], &["--seed", "2"]].concat(), "another seed: 1, not 2");
    refused(&[&again[..], &["--batch-size", "5"]].concat(), "another batch size: 4, not 5");
    let path = program.path(&program.file());
    let half = fs::read(&path).unwrap();
    fs::write(&path, half.get(..half.len() / 2).unwrap()).unwrap();
    refused(&again, "is not a valid checkpoint");
    fs::remove_file(&path).unwrap();
    let ended = program.run(&again);
    assert!(ended.errors.contains("No checkpoint yet"), "{}", ended.errors);
    ended.succeeds();
}

/// A request is answered with a checkpoint, or with the reason why there is none. The checkpoint at
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
