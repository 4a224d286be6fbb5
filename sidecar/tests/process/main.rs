//! Runs the program itself: observes it, kills it, and runs it again.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod exec;
mod explain;
mod faults;
#[cfg(feature = "forward")]
mod forward;
mod install;
#[cfg(feature = "manual")]
mod manual;
mod program;
mod tty;
#[cfg(feature = "watch")]
mod watch;

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use paceline_reporter::wire::{Progress, Source, State};
use paceline_sidecar::state::Saved;
use rustix::process::Signal;

use program::{Bench, Running, append, line, wait_for};

#[test]
fn command_runs_the_same_with_and_without_exec() {
    let bench = Bench::new();
    let script = "printf 'iter 1: loss 2.5, time 20ms\\n\\377\\000'; printf 'no end' >&2; exit 7";
    let watched = bench.run(&["exec", "--", "sh", "-c", script]);
    let alone = Command::new("sh").args(["-c", script]).output().unwrap();
    assert_eq!((watched.stdout, watched.stderr), (alone.stdout, alone.stderr));
    assert_eq!(watched.status.code(), Some(7));
    let missing = bench.run(&["exec", "--", "/no/such/program"]);
    assert_eq!(missing.status.code(), Some(127));
    let said = String::from_utf8(missing.stderr).unwrap();
    assert!(said.contains("cannot run /no/such/program") && said.contains("PATH"), "{said}");
    let folder = bench.run(&["exec", "--", bench.path("").to_str().unwrap()]);
    assert_eq!(folder.status.code(), Some(126));
    let said = String::from_utf8(folder.stderr).unwrap();
    assert!(said.contains("make it executable"), "{said}");
    let killed = bench.run(&["exec", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(killed.status.code(), Some(137));
}

#[test]
fn last_output_of_a_command_reaches_a_slow_reader() {
    let bench = Bench::new();
    // More than two pipes hold: the command ends before anything is read.
    let script = "head -c 150000 /dev/zero; exit 0";
    let mut command = bench.command(&["exec", "--", "sh", "-c", script]);
    let mut running = Running(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut output = running.0.stdout.take().unwrap();
    let mut read = 0;
    let mut piece = vec![0; 100_000];
    for _ in 0..2 {
        // Longer than the program waits for an idle thread.
        std::thread::park_timeout(Duration::from_millis(1200));
        read += output.read(&mut piece).unwrap();
    }
    read += output.read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(read, 150_000);
}

#[test]
fn running_command_is_read_and_gets_the_signals() {
    let bench = Bench::new();
    let script = "trap 'echo asked; exit 5' TERM; printf 'iter 1: loss 2.5, time 20ms\\n'; \
                  printf 'iter 2: loss 1.5, time 20ms\\n'; while true; do sleep 0.05; done";
    let mut command = bench.command(&["exec", "--job", "toy", "--", "sh", "-c", script]);
    let mut running = Running(command.stdout(Stdio::piped()).spawn().unwrap());
    let read = bench.until(|progress| (progress.eval.count, progress.step) == (2, Some(2)));
    assert_eq!((read.job.as_str(), read.source.as_str()), ("toy", "sidecar"));
    assert_eq!((read.eval.sum, read.rejected), (4.0, 0));
    assert!(bench.run(&["healthcheck", "--ready"]).status.success());
    running.signal(Signal::TERM);
    assert_eq!(running.0.wait().unwrap().code(), Some(5));
    let mut printed = String::new();
    running.0.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    assert!(printed.ends_with("asked\n"), "{printed}");
    assert_eq!(bench.run(&["healthcheck"]).status.code(), Some(1));
}

#[test]
fn log_is_followed_before_it_exists_and_across_rotations() {
    let bench = Bench::new();
    let log = bench.path("train.log");
    let mut command = bench.command(&["--log", log.to_str().unwrap()]);
    let mut running = Running(command.spawn().unwrap());
    let has_source = |progress: &Progress| {
        progress.sidecar.as_ref().is_some_and(|sidecar| !sidecar.sources.is_empty())
    };
    assert!(!bench.until(has_source).sidecar.unwrap().sources[0].up);
    append(&log, &line(1));
    append(&log, &line(2));
    bench.until(|progress| progress.eval.count == 2);
    fs::rename(&log, bench.path("train.log.1")).unwrap();
    append(&bench.path("train.log.1"), &line(3));
    append(&log, &line(4));
    let is_read = |source: &Source| source.up && source.grammar.as_deref() == Some("nanogpt");
    bench.until(|progress| {
        (progress.step, progress.eval.count) == (Some(4), 4)
            && progress.sidecar.iter().any(|sidecar| is_read(&sidecar.sources[0]))
    });
    running.signal(Signal::TERM);
    assert_eq!(running.0.wait().unwrap().code(), Some(0));
}

#[test]
fn new_sidecar_with_the_state_counts_nothing_twice() {
    let bench = Bench::new();
    let (log, state) = (bench.path("train.log"), bench.path("state.json"));
    let words = ["--log", log.to_str().unwrap(), "--state", state.to_str().unwrap()];
    for step in 1..=50 {
        append(&log, &line(step));
    }
    let first = Running(bench.command(&words).spawn().unwrap());
    let before = bench.until(|progress| progress.eval.count == 50);
    let saved = || fs::read_to_string(&state).is_ok_and(|text| text.contains(r#""count":50"#));
    wait_for(|| saved().then_some(()));
    first.signal(Signal::KILL);
    drop(first);
    for step in 51..=60 {
        append(&log, &line(step));
    }
    let _second = Running(bench.command(&words).spawn().unwrap());
    let after = bench.until(|progress| (progress.step, progress.eval.count) == (Some(60), 60));
    assert_ne!(after.instance, before.instance);
    assert_eq!(after.eval.first, before.eval.first);
}

#[test]
fn new_sidecar_with_the_state_knows_where_the_run_is() {
    let frame = |step: u32| {
        let (percent, loss) = (step * 5 / 2, 5.0 / f64::from(step + 1));
        format!("\r{percent:3}%|####      | {step}/40 [00:01<00:09, 10.00it/s, loss={loss:.4}]")
    };
    let pass = |steps: std::ops::RangeInclusive<u32>| steps.map(frame).collect::<String>();
    let read = |pieces: &[String]| {
        let bench = Bench::new();
        let (log, state) = (bench.path("train.log"), bench.path("state.json"));
        let words = ["--log", log.to_str().unwrap(), "--state", state.to_str().unwrap()];
        let mut last = None;
        for piece in pieces {
            append(&log, piece);
            let mut running = Running(bench.command(&words).spawn().unwrap());
            // Once its position is saved, all is read.
            let position = format!("\"offset\":{},", fs::metadata(&log).unwrap().len());
            wait_for(|| fs::read_to_string(&state).ok()?.contains(&position).then_some(()));
            // Its last frame is read once nothing follows, or at the end.
            running.signal(Signal::TERM);
            assert!(running.0.wait().unwrap().success());
            let read: Saved = serde_json::from_slice(&fs::read(&state).unwrap()).unwrap();
            let progress = read.progress.unwrap();
            last = Some((progress.step, progress.total_steps, progress.eval.count));
        }
        last.unwrap()
    };
    let passes = [pass(1..=40) + &pass(1..=40) + &pass(1..=20), pass(21..=40) + &pass(1..=30)];
    let whole = read(&[passes.concat()]);
    assert_eq!(whole.0, Some(3 * 40 + 30), "{whole:?}");
    assert_eq!(read(&passes), whole);
}

#[test]
fn times_between_lines_that_were_there_before_are_unknown() {
    let bench = Bench::new();
    let log = bench.path("train.log");
    let line = |step: u32| format!("step {step} loss {:.5}\n", 5.0 / f64::from(step));
    let lines: Vec<String> = (1..200_000).map(line).collect();
    append(&log, &lines.concat());
    let _running = Running(bench.command(&["--log", log.to_str().unwrap()]).spawn().unwrap());
    let before = bench.until(|progress| progress.step == Some(199_999));
    assert_eq!((before.eval.count, before.batch_latency.count), (199_999, 0));
    let mut next = 200_000..;
    wait_for(|| {
        let step = next.next()?;
        append(&log, &line(step));
        bench.progress().filter(|progress| progress.batch_latency.count > 0)
    });
}

#[test]
fn reports_of_the_job_are_taken() {
    let bench = Bench::new();
    let _running =
        Running(bench.command(&["--acceptable", "1", "--objective", "0.1"]).spawn().unwrap());
    bench.until(|progress| progress.state == State::Starting);
    let body = "{\"loss\":0.5,\"step\":7,\"batch_seconds\":0.1}\n{\"loss\":NaN,\"step\":8}\n";
    let post = |path: &str, body: &str| {
        let length = body.len();
        let head = format!("POST {path} HTTP/1.0\r\nhost: localhost\r\n");
        bench.ask(&format!("{head}content-length: {length}\r\n\r\n{body}")).unwrap()
    };
    assert!(post("/v1/report", body).contains(" 204 "));
    let refused = post("/v1/report", "{\"loss\":1}\n{\"step\":\"x\"}");
    assert!(refused.contains(" 400 ") && refused.contains("line 2: invalid step"), "{refused}");
    let read = bench.until(|progress| {
        (progress.eval.count, progress.step, progress.rejected) == (1, Some(8), 1)
    });
    assert_eq!(read.targets.acceptable, Some(1.0));
    assert_eq!(read.sidecar.unwrap().loss_from.as_deref(), Some("push"));
}

#[test]
fn replay_prints_the_reports() {
    let bench = Bench::new();
    let log = bench.path("train.log");
    append(&log, &format!("{}{}something else\n", line(1), line(2)));
    let path = log.to_str().unwrap();
    let text = String::from_utf8(bench.run(&["replay", path]).stdout).unwrap();
    assert!(text.starts_with("loss 2.5, step 1\n"), "{text}");
    assert!(text.contains("read as nanogpt"), "{text}");
    let mut piped = bench.command(&["replay", "-"]);
    let piped = piped.stdin(fs::File::open(path).unwrap()).output().unwrap();
    assert_eq!(String::from_utf8(piped.stdout).unwrap(), text);
    let json = String::from_utf8(bench.run(&["replay", "--json", path]).stdout).unwrap();
    assert!(json.starts_with("{\"loss\":2.5,\"step\":1}\n"), "{json}");
}

#[test]
fn option_overrides_environment_and_empty_variable_is_unset() {
    let bench = Bench::new();
    let status = bench.path("status.json");
    let words = ["exec", "--job", "given", "--status-file", status.to_str().unwrap(), "--", "true"];
    let mut command = bench.command(&words);
    command.env("PACELINE_JOB", "other").env("PACELINE_ACCEPTABLE", "");
    command.env("PACELINE_OBJECTIVE", "0.5");
    assert!(command.status().unwrap().success());
    let last: Progress = serde_json::from_slice(&fs::read(status).unwrap()).unwrap();
    assert_eq!(last.job, "given");
    assert_eq!((last.targets.acceptable, last.targets.objective), (None, Some(0.5)));
}

#[test]
fn missing_source_is_said_at_the_start() {
    let bench = Bench::new();
    let (log, said) = (bench.path("later.log"), bench.path("said"));
    let waits = format!("--log {} does not exist yet", log.display());
    for (words, part) in
        [(&["--log", log.to_str().unwrap()][..], &*waits), (&[], "no source is given")]
    {
        let mut command = bench.command(words);
        let running = Running(command.stderr(fs::File::create(&said).unwrap()).spawn().unwrap());
        wait_for(|| fs::read_to_string(&said).unwrap().contains(part).then_some(()));
        drop(running);
    }
}

#[test]
fn bad_usage_exits_with_2_and_names_the_cause() {
    let bench = Bench::new();
    for (words, part) in [
        (&["--pattern", "loss (", "--log", "x"][..], "expression: unclosed group"),
        (&["--pattern", "(?P<lass>.*)"], "lass"),
        (&["replay", "/no/such/log"], "/no/such/log"),
        (&["--listen", "nowhere"], "nowhere"),
        (&["exec"], "COMMAND"),
        (&["--batch-size", "0"], "--batch-size"),
        (&["--total-steps", "0"], "--total-steps"),
        (&["--total-steps", "-5"], "a whole number from 1 on"),
        (&["--batch-latency", "-1"], "a number of seconds above 0"),
        (&["--expected-steps", "0"], "--expected-steps"),
        (&["--batch-latency", "0"], "--batch-latency"),
        (&["--acceptable", "nan"], "--acceptable"),
        (&["--objective", ""], "--objective"),
        (&["--job", ""], "--job"),
        (&["--loss", " "], "--loss"),
        (&["--pattern", ""], "--pattern"),
        (&["--listen", ""], "--listen"),
        (&["--status-file", ""], "--status-file"),
        (&["--state", ""], "--state"),
        (&["--log", ""], "--log"),
        (&["--csv", ""], "--csv"),
        (&["--tfevents", ""], "--tfevents"),
        (&["--docker", ""], "--docker"),
        (&["--statsd", ""], "--statsd"),
        (&["--statsd", "foo"], "expected host:port or unix:/path.sock, for example"),
        (&["--log", "/tmp"], "cannot read --log /tmp: it is a folder; name a file"),
        (&["--csv", "/tmp"], "cannot read --csv /tmp: it is a folder; name a file"),
        (&["--tfevents", "/proc/version"], "it is a file; name a folder of event files"),
        (&["healthcheck", "--listen", "foo"], "invalid --listen \"foo\": expected `host:port`"),
        (&["healthcheck", "--listen", "unix:s.sock"], "with an absolute path"),
        (&["exec", "--job", "", "--", "true"], "--job"),
        (&["exec", "--", ""], "invalid COMMAND"),
    ] {
        let output = bench.run(words);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(part) && !said.contains("listening"), "{words:?}: {said}");
    }
}

#[test]
fn commands_show_examples_in_their_help() {
    let bench = Bench::new();
    for command in ["exec", "replay", "healthcheck", "install"] {
        let output = bench.run(&[command, "--help"]);
        let help = String::from_utf8(output.stdout).unwrap();
        assert!(help.contains(&format!("Examples:\n  paceline-sidecar {command}")), "{help}");
    }
}
