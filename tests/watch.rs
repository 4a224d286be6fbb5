//! `watch` and `serve` beside a real job that the sidecar runs.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

use std::path::Path;
use std::process::Stdio;

use paceline_system_tests::{Allocator, program, until};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// Two jobs at sockets in a folder.
struct Jobs {
    folder: TempDir,
    _running: [Child; 2],
}

/// A training that prints 40 losses of 100, and waits for the file `go-on`, or for the end of the test's
/// folder.
const TRAINING: &str = "i=1; while [ $i -le 40 ]; do echo \"step $i/100 loss: $((100 - i)).5 time: 0.02s\"; \
                        i=$((i + 1)); done; while [ -e here ] && [ ! -e go-on ]; do sleep 0.05; done; exit 3";

impl Jobs {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("here"), "").unwrap();
        let start = |name: &str| {
            let mut command = sidecar(&["exec", "--job", name, "--acceptable", "70", "--"]);
            command.args(["sh", "-c", TRAINING]).current_dir(folder.path());
            command.env("PACELINE_LISTEN", address(folder.path(), name));
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        };
        let running = ["vae", "mnist"].map(start);
        let jobs = Self { folder, _running: running };
        for name in ["vae", "mnist"] {
            until("the job has reported", || async {
                let address = jobs.address(name);
                let (code, said, _) = run(sidecar(&["watch", &address, "--json"])).await;
                let is_read = code == Some(0) && object(&said)["jobs"][0]["progress"]["step"] == 40;
                Ok(is_read.then_some(()))
            })
            .await
            .unwrap();
        }
        jobs
    }

    fn address(&self, name: &str) -> String {
        address(self.folder.path(), name)
    }

    fn folder(&self) -> &str {
        self.folder.path().to_str().unwrap()
    }
}

fn address(folder: &Path, name: &str) -> String {
    format!("unix:{}/{name}.sock", folder.display())
}

fn sidecar(words: &[&str]) -> Command {
    let mut command = Command::new(program("paceline-sidecar").unwrap());
    command.args(words).env_remove("PACELINE_LISTEN").kill_on_drop(true);
    command
}

/// Exit code and both outputs of a command.
async fn run(mut command: Command) -> (Option<i32>, String, String) {
    let output = command.stdin(Stdio::null()).output().await.unwrap();
    let [out, said] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    (output.status.code(), out, said)
}

fn object(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

#[tokio::test]
async fn snapshot_of_both_commands_agrees_with_the_job() {
    let jobs = Jobs::start().await;
    let vae = jobs.address("vae");
    let paceline = Allocator::command(&["watch", &vae, "--once"]).unwrap();
    for command in [sidecar(&["watch", &vae, "--once"]), sidecar(&["watch", &vae]), paceline] {
        let (code, said, error) = run(command).await;
        assert_eq!((code, error.as_str()), (Some(0), ""));
        for part in [
            "vae: Training, the loss is sound",
            "step 40 of 100",
            "62.50 over 5 reports, best 60.50",
            "Acceptable  70: reached ",
            &vae,
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(said.lines().all(|line| line.chars().count() <= 100), "{said}");
    }
    let list = sidecar(&["watch", "--once", "--folder", jobs.folder()]);
    let (code, said, _) = run(list).await;
    assert_eq!(code, Some(0));
    for name in ["vae", "mnist"] {
        assert!(
            said.lines().any(|line| line.starts_with(name) && line.contains("40.0 %")),
            "{said}"
        );
    }
    let (_, json, _) = run(Allocator::command(&["watch", &vae, "--json"]).unwrap()).await;
    assert_eq!(object(&json)["jobs"][0]["progress"]["eval"]["best"], 60.5);
}

/// The status line and the body of an answer.
async fn get(address: &str, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

#[tokio::test]
async fn served_list_has_both_jobs_and_how_they_end() {
    let jobs = Jobs::start().await;
    let mut serve = sidecar(&["serve", "--listen", "127.0.0.1:0", "--folder", jobs.folder()]);
    let mut serve = serve.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(serve.stderr.take().unwrap()).lines();
    let first = said.next_line().await.unwrap().unwrap();
    let at = first.strip_prefix("paceline-sidecar: all jobs of this machine: http://").unwrap();
    let at = at.trim_end_matches('/');
    assert!(get(at, "/").await.1.contains("Jobs of this machine"));
    let vae = || async {
        let list = object(&get(at, "/v1/jobs").await.1);
        let all = list["jobs"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|job| job["address"] == jobs.address("vae")).unwrap_or_default()
    };
    let job = until("the job is listed", || async {
        Ok(Some(vae().await).filter(|job| job["progress"]["step"] == 40))
    });
    let job = job.await.unwrap();
    let curve = job["curve"].as_array().unwrap();
    assert!((1..=60).contains(&curve.len()), "{curve:?}");
    let page = format!("/jobs/{}/", job["key"].as_str().unwrap());
    assert!(get(at, &page).await.1.contains("Duration of a batch"));
    let history = object(&get(at, &format!("{page}v1/history")).await.1);
    assert_eq!(history["instance"], job["progress"]["instance"]);
    std::fs::write(jobs.folder.path().join("go-on"), "").unwrap();
    until("the end of the job is listed", || async {
        Ok((vae().await["state"] == "Failed").then_some(()))
    })
    .await
    .unwrap();
    assert!(get(at, &format!("{page}v1/progress")).await.0.contains(" 502 "));
}
