//! What is served to Prometheus, judged by its own checker: `promtool check metrics`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, ensure};
use libtest_mimic::{Arguments, Trial};
use paceline_reporter::{LocalAddr, Reporter};

fn main() -> ExitCode {
    let args = Arguments::from_args();
    let promtool = if args.list { None } else { find() };
    let missing = promtool.is_none();
    let check = move |reporter: fn() -> anyhow::Result<Reporter>| {
        let promtool = promtool.clone();
        move || Ok(check(promtool.as_deref().unwrap_or_default(), &reporter()?)?)
    };
    let trials = [
        Trial::test("metrics_of_a_silent_job", check(silent)),
        Trial::test("metrics_of_a_busy_job", check(busy)),
    ];
    let trials = trials.map(|trial| trial.with_ignored_flag(missing));
    libtest_mimic::run(&args, trials.into()).exit_code()
}

/// Where promtool is; what keeps it away is said by the script.
fn find() -> Option<String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/promtool.sh");
    let found = Command::new(script).stderr(Stdio::inherit()).output().ok()?;
    let path = String::from_utf8(found.stdout).ok()?;
    found.status.success().then(|| path.trim().to_owned())
}

fn silent() -> anyhow::Result<Reporter> {
    Ok(Reporter::builder("silent").listen("127.0.0.1:0").start()?)
}

fn busy() -> anyhow::Result<Reporter> {
    let builder =
        Reporter::builder("a \"b\"\\c\nd").acceptable(2.0).objective(1.0).batch_latency(0.1);
    let reporter = builder.total_steps(1_000).dataset("MNIST").listen("127.0.0.1:0").start()?;
    for step in 0..500 {
        reporter.batch().loss(100.0 / f64::from(step + 1));
    }
    reporter.report(f64::NAN);
    reporter.validation(3.0);
    reporter.epoch(2);
    Ok(reporter)
}

fn check(promtool: &str, reporter: &Reporter) -> anyhow::Result<()> {
    let text = metrics(reporter)?;
    let mut child = Command::new(promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    child.stdin.take().context("it is piped")?.write_all(text.as_bytes())?;
    let said = child.wait_with_output()?;
    let [out, err] = [&said.stdout, &said.stderr].map(|said| String::from_utf8_lossy(said));
    // It also exits with 0 where it has only advice, which is taken as well.
    ensure!(said.status.success() && out.is_empty() && err.is_empty(), "{out}{err}\n{text}");
    Ok(())
}

fn metrics(reporter: &Reporter) -> anyhow::Result<String> {
    let Some(LocalAddr::Tcp(address)) = reporter.local_addr() else {
        anyhow::bail!("it listens on a port");
    };
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").context("the head ends")?;
    Ok(body.to_owned())
}
