//! What the program forwards, and that it never harms the job.

use std::fs;
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use paceline_reporter::wire::Forward;
use rustix::process::Signal;
use serde_json::Value;

use super::program::{Bench, Running, append, line, wait_for};

/// A shell script that prints falling losses and ends with this.
fn training(end: &str) -> String {
    let lines: Vec<_> = (1..=12).map(|step| format!("printf '{}'", line(step).trim())).collect();
    format!("{}\n{end}", lines.join("; echo; ") + "; echo")
}

fn events(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn command_of_an_event_reads_it_once_from_standard_input() {
    let bench = Bench::new();
    let file = bench.path("events");
    let hook = format!("acceptable,objective,finished,failed=cat >>{}", file.display());
    let script = training("exit 7");
    let words =
        ["exec", "--job", "vae", "--acceptable", "2", "--on", &hook, "--", "sh", "-c", &script];
    let output = bench.run(&words);
    assert_eq!(output.status.code(), Some(7));
    let events = events(&file);
    let kinds: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["acceptable", "failed"], "{}", text(&output.stderr));
    assert_eq!(events[0]["job"], "vae");
    assert_eq!(events[1]["progress"]["state"], "failed");
    assert_eq!(events[1]["progress"]["step"], 12);
}

#[test]
fn command_of_an_event_is_alone_in_its_session() {
    let bench = Bench::new();
    let file = bench.path("stat");
    let hook = format!("finished=cat /proc/$$/stat >{}; echo x >/dev/tty", file.display());
    let output = bench.run(&["exec", "--on", &hook, "--", "true"]);
    assert!(output.status.success());
    let stat = fs::read_to_string(&file).unwrap();
    let fields: Vec<_> = stat.split(' ').collect();
    // Process, group, session, terminal.
    assert_eq!((fields[4], fields[5], fields[6]), (fields[0], fields[0], "0"));
    let said = text(&output.stderr);
    assert!(
        said.contains("cannot forward to on:finished: the command ended with exit status"),
        "{said}"
    );
    assert!(said.contains("; the job has ended, and its exit code stays\n"), "{said}");
    assert!(!said.contains("runs on"), "{said}");
}

#[test]
fn signal_for_the_job_passes_its_commands_by() {
    let bench = Bench::new();
    let folder = bench.path("").display().to_string();
    let hook = format!(
        "acceptable=cd {folder}; trap 'touch signalled' TERM; touch started; \
         while [ ! -e go ]; do sleep 0.05; done; touch done"
    );
    // The shell would wait for a program that it runs before it ends.
    let script = training("while :; do sleep 0.05; done");
    let words = ["exec", "--acceptable", "5", "--flush-timeout", "60", "--on", &hook, "--"];
    let mut command = bench.command(&words);
    let running = command.args(["sh", "-c", &script]).stdout(Stdio::null()).spawn().unwrap();
    let mut running = Running(running);
    wait_for(|| bench.path("started").exists().then_some(()));
    running.signal(Signal::TERM);
    // The job has ended once the endpoint is closed.
    wait_for(|| bench.progress().is_none().then_some(()));
    fs::write(bench.path("go"), "").unwrap();
    assert_eq!(running.0.wait().unwrap().code(), Some(143));
    assert!(bench.path("done").exists() && !bench.path("signalled").exists());
}

#[test]
fn what_hangs_ends_with_the_flush_and_leaves_no_process() {
    let bench = Bench::new();
    let pid = bench.path("pid");
    let hook = format!("failed=trap '' TERM; echo $$ >{}; sleep 600", pid.display());
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/s3cr3t", silent.local_addr().unwrap());
    let mut command =
        bench.command(&["exec", "--flush-timeout", "3", "--on", &hook, "--", "sh", "-c", "exit 7"]);
    // Not in the arguments, so that other users do not see it.
    let output = command.env("PACELINE_WEBHOOK", url).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    let pid = fs::read_to_string(pid).unwrap();
    wait_for(|| (!Path::new(&format!("/proc/{}", pid.trim())).exists()).then_some(()));
    let said = text(&output.stderr);
    assert!(said.contains("cannot forward to on:failed: the command took too long"), "{said}");
    assert!(
        said.contains("cannot forward") && said.contains("webhook:http://127.0.0.1:"),
        "{said}"
    );
    assert!(!said.contains("s3cr3t"), "{said}");
}

#[test]
fn failing_command_is_counted_and_said_once() {
    let bench = Bench::new();
    let script = training("while :; do sleep 0.05; done");
    let rule = "acceptable,objective=echo no network >&2; exit 3";
    let words = ["exec", "--acceptable", "5", "--objective", "4", "--on", rule, "--"];
    let mut command = bench.command(&words);
    command.args(["sh", "-c", &script]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut running = Running(command.spawn().unwrap());
    let progress = bench.until(|progress| {
        progress.sidecar.iter().flat_map(|sidecar| &sidecar.forwards).any(|one| one.failed == 2)
    });
    let forwards = progress.sidecar.unwrap().forwards;
    let error = "the command ended with exit status: 3: no network".to_owned();
    let name = "on:acceptable,objective".to_owned();
    assert_eq!(forwards, [Forward { name, failed: 2, error: Some(error), ..Forward::default() }]);
    let metrics = bench.ask("GET /metrics HTTP/1.0\r\nhost: localhost\r\n\r\n").unwrap();
    let sample = "paceline_forward_failed_total{target=\"on:acceptable,objective\"} 2";
    assert!(metrics.lines().any(|line| line == sample), "{metrics}");
    running.signal(Signal::TERM);
    let mut said = String::new();
    running.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said.matches("no network").count(), 1, "{said}");
}

#[test]
fn last_state_is_flushed_to_targets_of_the_environment() {
    let bench = Bench::new();
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    server.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let katib = bench.path("metrics.log");
    let script = training("exit 0");
    let mut command = bench.command(&["exec", "--", "sh", "-c", &script]);
    let address = format!("udp://{}", server.local_addr().unwrap());
    command.env("PACELINE_KATIB", &katib).env("PACELINE_STATSD_OUT", address);
    command.env("PACELINE_STATSD_PREFIX", "ml.").env("PACELINE_STATSD_TAGS", "team:vision,gpu");
    assert!(command.stdout(Stdio::null()).status().unwrap().success());
    let lines = fs::read_to_string(&katib).unwrap();
    assert!(lines.lines().last().unwrap().ends_with(" step=12"), "{lines}");
    let step = wait_for(|| {
        let mut buffer = [0; 2048];
        let length = server.recv(&mut buffer).unwrap();
        let datagram = text(&buffer[..length]);
        datagram.contains("ml.step:12|g|#team:vision,gpu").then_some(datagram)
    });
    assert!(step.contains("ml.loss:"), "{step}");
}

#[test]
fn sidecar_of_a_log_flushes_when_it_is_ended() {
    let bench = Bench::new();
    let (log, katib) = (bench.path("train.log"), bench.path("metrics.log"));
    append(&log, &line(1));
    let words = ["--log", log.to_str().unwrap(), "--katib", katib.to_str().unwrap()];
    let mut running = Running(bench.command(&words).spawn().unwrap());
    wait_for(|| fs::read_to_string(&katib).ok().filter(|text| text.contains("step=1")));
    append(&log, &line(2));
    bench.until(|progress| progress.eval.count == 2);
    running.signal(Signal::TERM);
    assert!(running.0.wait().unwrap().success());
    let lines = fs::read_to_string(&katib).unwrap();
    assert!(lines.lines().last().unwrap().ends_with(" step=2"), "{lines}");
}

#[test]
fn second_signal_ends_the_flush() {
    let bench = Bench::new();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let words = ["exec", "--flush-timeout", "3600", "--webhook", &url, "--", "sh", "-c", "exit 7"];
    let mut running = Running(bench.command(&words).spawn().unwrap());
    let (stream, _) = silent.accept().unwrap();
    // It may not wait yet, so it is repeated.
    let status = wait_for(|| {
        running.signal(Signal::TERM);
        thread::park_timeout(Duration::from_millis(50));
        running.0.try_wait().unwrap()
    });
    assert_eq!(status.code(), Some(7));
    drop(stream);
}

#[test]
fn trainjob_outside_of_kubeflow_is_only_named() {
    let bench = Bench::new();
    let output = bench.run(&["exec", "--trainjob", "--", "true"]);
    assert!(output.status.success());
    let said = text(&output.stderr);
    assert!(said.contains("TrainJob: KUBEFLOW_TRAINER_SERVER_URL is not set"), "{said}");
    // Where the variables are there, nothing is sent unless it is asked for.
    let mut command = bench.command(&["exec", "--", "true"]);
    command.env("KUBEFLOW_TRAINER_SERVER_URL", "not a url").stderr(Stdio::piped());
    let said = text(&command.output().unwrap().stderr);
    assert!(!said.contains("TrainJob"), "{said}");
}

#[test]
fn wrong_targets_exit_with_2_before_the_job_starts() {
    let bench = Bench::new();
    let started = bench.path("started");
    let script = format!("touch {}", started.display());
    for (option, value, part) in [
        ("--statsd-out", "nowhere", "invalid statsd address \"nowhere\""),
        ("--statsd-out", "http://host:80", "udp://HOST:PORT"),
        ("--on", "done=true", "invalid event \"done\""),
        ("--on", "finished", "EVENTS=COMMAND"),
        ("--on", "finished= ", "EVENTS=COMMAND"),
        ("--webhook", "ftp://me:s3cr3t@host/s3cr3t", "invalid --webhook: expected a URL"),
        ("--webhook-on", "all", "invalid event \"all\""),
        ("--katib", "", "--katib"),
        ("--flush-timeout", "0", "--flush-timeout"),
        ("--flush-timeout", "-1", "a number of seconds above 0"),
        ("--on-timeout", "-1", "a number of seconds above 0"),
        ("--on-timeout", "soon", "--on-timeout"),
    ] {
        let output = bench.run(&["exec", option, value, "--", "sh", "-c", &script]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{option} {value}: {said}");
        assert!(said.contains(part) && !said.contains("s3cr3t"), "{option} {value}: {said}");
    }
    for (name, value, part) in [
        ("PACELINE_ON", "finished=true\nfailed", "invalid PACELINE_ON"),
        ("PACELINE_TRAINJOB", "maybe", "invalid PACELINE_TRAINJOB \"maybe\": expected 1 or 0"),
        ("PACELINE_FLUSH_TIMEOUT", "-1", "invalid PACELINE_FLUSH_TIMEOUT \"-1\""),
        ("PACELINE_STATSD_OUT", "x", "invalid PACELINE_STATSD_OUT"),
    ] {
        let mut command = bench.command(&["exec", "--", "sh", "-c", &script]);
        let output = command.env(name, value).stderr(Stdio::piped()).output().unwrap();
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(part), "{name}: {said}");
    }
    assert!(!started.exists());
}
