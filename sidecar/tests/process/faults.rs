//! Faults around a sidecar: they do not affect the job, and reports continue where possible.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use paceline_reporter::wire::{Progress, State};
use rustix::process::Signal;

use crate::program::{Bench, Running, append, line, wait_for};

/// A shell loop that waits for a file `end` in its folder, for two minutes at most.
const WAIT: &str = "for i in $(seq 12000); do [ ! -e end ] || break; sleep 0.01; done";

/// What the program does with a limit of open files.
fn with_open_files(bench: &Bench, limit: u32, words: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_paceline-sidecar");
    let script = format!("ulimit -n {limit}; exec {program} {words}");
    let socket = format!("unix:{}", bench.path("sidecar.sock").display());
    Command::new("sh").args(["-c", &script]).env("PACELINE_LISTEN", socket).output().unwrap()
}

#[test]
fn command_runs_without_an_endpoint_at_a_limit_of_open_files() {
    for limit in [5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18] {
        for tty in ["", "--tty"] {
            let bench = Bench::new();
            let words = format!("exec {tty} -- sh -c 'echo hi; exit 3'");
            let output = with_open_files(&bench, limit, &words);
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.stdout, b"hi\n", "{limit}: {said}");
            assert_eq!(output.status.code(), Some(3), "{limit}: {said}");
            assert!(!said.contains("panicked"), "{limit}: {said}");
            if limit <= 10 {
                assert!(said.contains("the command runs without an endpoint"), "{limit}: {said}");
                assert!(said.contains("Too many open files"), "{limit}: {said}");
                assert_eq!(said.lines().count(), 1, "{limit}: {said}");
            }
        }
    }
}

#[test]
fn commands_name_a_limit_of_open_files() {
    let bench = Bench::new();
    let mut all = vec!["healthcheck", "--log train.log"];
    if cfg!(feature = "watch") {
        all.extend(["watch --once", "serve"]);
    }
    for words in all {
        let output = with_open_files(&bench, 6, words);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{words}: {said}");
        assert!(
            said.contains("Too many open files") && said.lines().count() == 1,
            "{words}: {said}"
        );
    }
}

/// Every write to it fails as on a full disk.
fn full_disk() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

#[test]
fn command_continues_if_its_output_cannot_be_written() {
    let bench = Bench::new();
    let script = format!("printf %s '{}{}'; {WAIT}; exit 3", line(1), line(2));
    let mut command = bench.command(&["exec", "--", "sh", "-c", &script]);
    let said = bench.path("said");
    command.current_dir(bench.path("")).stdout(full_disk()).stderr(File::create(&said).unwrap());
    let mut running = Running(command.spawn().unwrap());
    // What is read and what cannot be written are counted by two threads.
    let read = bench.until(|progress| {
        let mut sources = progress.sidecar.iter().flat_map(|sidecar| &sidecar.sources);
        progress.eval.count == 2 && sources.any(|one| one.dropped > 0 && one.error.is_some())
    });
    let said = fs::read_to_string(said).unwrap();
    assert!(said.contains("cannot write standard output: No space left"), "{said}");
    let source = &read.sidecar.unwrap().sources[0];
    assert_eq!(source.dropped, 1);
    assert!(source.error.as_ref().unwrap().contains("No space left"), "{source:?}");
    append(&bench.path("end"), "");
    assert_eq!(running.0.wait().unwrap().code(), Some(3));
}

#[test]
fn status_file_that_cannot_be_written_is_named() {
    let bench = Bench::new();
    let output = bench.run(&["exec", "--status-file", "/no/such/status.json", "--", "true"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let times = said.matches("cannot write status file /no/such/status.json: No such file").count();
    assert_eq!(times, 1, "{said}");
}

#[test]
fn sidecar_begins_again_if_its_state_is_empty_or_cut() {
    let bench = Bench::new();
    let (log, state) = (bench.path("train.log"), bench.path("state.json"));
    append(&log, &line(1));
    append(&log, &line(2));
    let words = ["--log", log.to_str().unwrap(), "--state", state.to_str().unwrap()];
    for cut in ["", "{\"progress\":{\"schema\":1,"] {
        fs::write(&state, cut).unwrap();
        let said = bench.path("said");
        let mut command = bench.command(&words);
        let running = Running(command.stderr(File::create(&said).unwrap()).spawn().unwrap());
        bench.until(|progress| progress.eval.count == 2);
        let said = fs::read_to_string(said).unwrap();
        assert!(said.contains("state.json is empty or cut: all counts begin again"), "{said}");
        drop(running);
    }
    fs::write(&state, "no state").unwrap();
    let refused = bench.run(&words);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("cannot read --state") && said.contains("state.json"), "{said}");
}

#[test]
fn disabled_run_leaves_the_saved_counts() {
    let bench = Bench::new();
    let (log, state) = (bench.path("train.log"), bench.path("state.json"));
    append(&log, &line(1));
    let words = ["--log", log.to_str().unwrap(), "--state", state.to_str().unwrap()];
    let running = Running(bench.command(&words).spawn().unwrap());
    wait_for(|| {
        fs::read_to_string(&state).is_ok_and(|text| text.contains("\"count\":1")).then_some(())
    });
    drop(running);
    let before = fs::read(&state).unwrap();
    append(&log, &line(2));
    let mut disabled =
        Running(bench.command(&words).env("PACELINE_DISABLED", "1").spawn().unwrap());
    // It handles the signal once it has started.
    wait_for(|| {
        disabled.signal(Signal::TERM);
        disabled.0.try_wait().unwrap()
    });
    assert_eq!(fs::read(&state).unwrap(), before);
    let _running = Running(bench.command(&words).spawn().unwrap());
    bench.until(|progress| progress.eval.count == 2);
}

#[test]
fn state_that_cannot_be_written_beside_the_log_costs_no_time() {
    let bench = Bench::new();
    let (log, state, said) =
        (bench.path("train.log"), bench.path("state.json"), bench.path("said"));
    append(&log, &line(1));
    let program = env!("CARGO_BIN_EXE_paceline-sidecar");
    let script =
        format!("ulimit -f 0; exec {program} --log {} --state {}", log.display(), state.display());
    let mut command = Command::new("sh");
    let socket = format!("unix:{}", bench.path("sidecar.sock").display());
    // A pipe has no length, unlike a file.
    let (mut reader, writer) = std::io::pipe().unwrap();
    command.args(["-c", &script]).env("PACELINE_LISTEN", socket).stderr(writer);
    let running = Running(command.spawn().unwrap());
    drop(command);
    bench.until(|progress| progress.eval.count == 1);
    let path = format!("/proc/{}/stat", running.0.id());
    let ticks = || -> u64 {
        let stat = fs::read_to_string(&path).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let before = ticks();
    thread::park_timeout(Duration::from_secs(3));
    let used = ticks() - before;
    assert!(used < 30, "{used} ticks in 3 s");
    assert!(!bench.path("state.json.new").exists(), "{}", said.display());
    drop(running);
    let mut all = String::new();
    reader.read_to_string(&mut all).unwrap();
    assert_eq!(all.matches("cannot write --state").count(), 1, "{all}");
}

#[test]
fn container_that_does_not_exist_is_named() {
    let bench = Bench::new();
    let socket = bench.path("engine.sock");
    let engine = UnixListener::bind(&socket).unwrap();
    thread::spawn(move || {
        for stream in engine.incoming() {
            let mut stream = stream.unwrap();
            let body = "{\"message\":\"No such container: nosuch\"}";
            let head = format!("HTTP/1.1 404 Not Found\r\nContent-Length: {}\r\n\r\n", body.len());
            let mut request = [0; 1024];
            assert!(stream.read(&mut request).unwrap() > 0);
            stream.write_all((head + body).as_bytes()).unwrap();
        }
    });
    let said = bench.path("said");
    let mut command = bench.command(&["--docker", "nosuch"]);
    command.env("DOCKER_HOST", format!("unix://{}", socket.display()));
    let mut running = Running(command.stderr(File::create(&said).unwrap()).spawn().unwrap());
    let said = || fs::read_to_string(&said).unwrap();
    let expected = "cannot read --docker nosuch: the container engine answered 404 Not Found: No such \
                    container: nosuch; trying again";
    wait_for(|| said().contains(expected).then_some(()));
    running.signal(Signal::TERM);
    assert_eq!(running.0.wait().unwrap().code(), Some(0));
    assert_eq!(said().matches("cannot read --docker").count(), 1, "{}", said());
}

#[test]
fn sidecar_serves_if_its_messages_cannot_be_written() {
    let bench = Bench::new();
    let log = bench.path("train.log");
    let mut command = bench.command(&["--log", log.to_str().unwrap()]);
    let _running = Running(command.stderr(full_disk()).spawn().unwrap());
    append(&log, &line(1));
    bench.until(|progress| progress.eval.count == 1);
}

#[test]
fn deleted_log_is_followed_again_once_recreated() {
    let bench = Bench::new();
    let log = bench.path("train.log");
    let _running = Running(bench.command(&["--log", log.to_str().unwrap()]).spawn().unwrap());
    append(&log, &line(1));
    bench.until(|progress| progress.eval.count == 1);
    fs::remove_file(&log).unwrap();
    let is_up = |progress: &Progress| {
        progress.sidecar.as_ref().unwrap().sources.first().is_some_and(|source| source.up)
    };
    bench.until(|progress| !is_up(progress));
    append(&log, &line(2));
    bench.until(|progress| {
        (progress.step, progress.eval.count, is_up(progress)) == (Some(2), 2, true)
    });
}

#[test]
fn killed_command_is_reported_as_failed() {
    let bench = Bench::new();
    let status = bench.path("status.json");
    let script = format!("printf %s '{}'; {WAIT}; kill -9 $$", line(1));
    let words = ["exec", "--status-file", status.to_str().unwrap(), "--", "sh", "-c", &script];
    let mut command = bench.command(&words);
    command.current_dir(bench.path("")).stdout(Stdio::null());
    let mut running = Running(command.spawn().unwrap());
    bench.until(|progress| progress.eval.count == 1);
    append(&bench.path("end"), "");
    assert_eq!(running.0.wait().unwrap().code(), Some(137));
    let last: Progress = serde_json::from_slice(&fs::read(status).unwrap()).unwrap();
    assert_eq!((last.state, last.eval.count), (State::Failed, 1));
}

#[test]
fn file_in_the_place_of_a_statsd_socket_is_kept_and_named() {
    let bench = Bench::new();
    let model = bench.path("model.pt");
    fs::write(&model, "weights").unwrap();
    let refused = bench.run(&["--statsd", &format!("unix:{}", model.display())]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("Address already in use"), "{said}");
    assert_eq!(fs::read_to_string(&model).unwrap(), "weights");
}

#[test]
fn healthcheck_ends_whatever_answers() {
    for endless in [true, false] {
        let bench = Bench::new();
        let listener = UnixListener::bind(bench.path("sidecar.sock")).unwrap();
        let answers = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // Fast and without end, or slowly and without end.
            while stream.write_all(if endless { &[b'x'; 16_384] } else { b"x" }).is_ok() {
                if !endless {
                    thread::park_timeout(Duration::from_millis(100));
                }
            }
        });
        let mut checking = Running(bench.command(&["healthcheck"]).spawn().unwrap());
        let mut looks = 0;
        let status = wait_for(|| {
            looks += 1;
            assert!(looks < 2000, "it ends within some seconds");
            checking.0.try_wait().unwrap()
        });
        assert_eq!(status.code(), Some(1));
        answers.join().unwrap();
    }
}
