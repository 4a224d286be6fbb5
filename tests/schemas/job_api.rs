//! A job's endpoint, of the reporter and of the sidecar.

use std::collections::BTreeSet;
use std::process::Stdio;

use paceline_reporter::{LocalAddr, Reporter};
use paceline_system_tests::{program, until};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::description::Description;
use crate::http::{Place, Request};

const NAME: &str = "job-api.openapi.json";

/// Another machine's name.
const FOREIGN: &str = "host: job.example.org";

/// The paths that only the sidecar has.
const POSTS: [&str; 2] = ["/v1/report", "/v1/trainer-status"];

/// A sidecar that runs a job without output, until its folder is removed.
struct Sidecar {
    folder: TempDir,
    _child: Child,
}

impl Sidecar {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("here"), "").unwrap();
        let mut command = Command::new(program("paceline-sidecar").unwrap());
        command.args(["exec", "--job", "vae", "--acceptable", "0.5", "--"]);
        command.args(["sh", "-c", "while [ -e here ]; do sleep 0.05; done"]);
        command.env("PACELINE_LISTEN", format!("unix:{}/job.sock", folder.path().display()));
        command.current_dir(folder.path()).kill_on_drop(true);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let sidecar = Self { folder, _child: child };
        until("the endpoint listens", || async {
            let Place::Unix(path) = sidecar.place() else { return Ok(None) };
            Ok(tokio::net::UnixStream::connect(path).await.ok().map(drop))
        })
        .await
        .unwrap();
        sidecar
    }

    fn place(&self) -> Place {
        Place::Unix(self.folder.path().join("job.sock"))
    }
}

/// A reporter that has reported, and its address.
fn reporter() -> (Reporter, Place) {
    let builder = Reporter::builder("mnist").listen("127.0.0.1:0").hide_address();
    let reporter = builder.acceptable(0.5).total_steps(100).start().unwrap();
    reporter.report(0.7);
    let Some(LocalAddr::Tcp(address)) = reporter.local_addr() else { panic!("no address") };
    let place = Place::Tcp(*address);
    (reporter, place)
}

#[test]
fn description_has_exactly_the_routes_of_the_endpoint() {
    let routes = paceline_reporter::all_routes().chain(paceline_sidecar::job::routes());
    let routes: BTreeSet<_> =
        routes.map(|(method, path)| (method.to_owned(), path.to_owned())).collect();
    assert_eq!(Description::read(NAME).operations(), routes);
}

/// What both kinds of endpoints answer.
async fn check_reads(described: &mut Description, place: &Place) {
    for path in ["/", "/v1/progress", "/v1/history?after=1.5", "/metrics", "/healthz", "/readyz"] {
        described.check(place, &Request::get(path), 200).await;
    }
    let open = Request::get("/metrics").with("accept: application/openmetrics-text; version=1.0.0");
    let answer = described.check(place, &open, 200).await;
    assert!(answer.content_type.unwrap().starts_with("application/openmetrics-text"));
    described.check(place, &Request::get("/v1/history?after=soon"), 400).await;
    let events = described.check(place, &Request::get("/v1/events"), 200).await;
    described.check_event(&events, "Progress");
    described.check(place, &Request::post("/v1/checkpoint", ""), 202).await;
}

/// Bodies that the sidecar takes, and such that it refuses: the description agrees, except where JSON cannot say it.
async fn check_posts(described: &mut Description, place: &Place) {
    for path in POSTS {
        let example = described.example(path);
        assert!(described.allows(path, &example));
        described.check(place, &Request::post(path, example), 204).await;
    }
    let lines = "{\"loss\":0.4,\"step\":121}\n{\"loss\":NaN,\"mean\":\"epoch\"}\n";
    described.check(place, &Request::post("/v1/report", lines), 204).await;
    for (path, wrong) in [
        ("/v1/report", "{}"),
        ("/v1/report", r#"{"step": -1}"#),
        ("/v1/report", r#"{"batch_seconds": 0}"#),
        ("/v1/report", r#"{"loss": 1, "mean": "year"}"#),
        ("/v1/report", "[1]"),
        ("/v1/trainer-status", "{}"),
        ("/v1/trainer-status", r#"{"trainerStatus": {"progressPercentage": 101}}"#),
        ("/v1/trainer-status", r#"{"trainerStatus": {"metrics": [{"name": "loss"}]}}"#),
    ] {
        assert!(!described.allows(path, wrong), "{path}: {wrong}");
        described.check(place, &Request::post(path, wrong), 400).await;
    }
    for path in POSTS {
        let large = Request::post(path, " ".repeat(1024 * 1024 + 1));
        described.check(place, &large, 413).await;
        // The sidecar waits 10 s for the rest.
        described.check(place, &Request::post(path, "{").without_its_body(), 408).await;
    }
}

#[tokio::test]
async fn running_endpoints_answer_as_described() {
    let mut described = Description::read(NAME);
    let sidecar = Sidecar::start().await;
    described.check(&sidecar.place(), &Request::get("/readyz"), 503).await;
    described.check(&sidecar.place(), &Request::get("/v1/progress"), 200).await;
    check_posts(&mut described, &sidecar.place()).await;
    check_reads(&mut described, &sidecar.place()).await;

    let (_reporter, place) = reporter();
    until("the report has arrived", || async {
        Ok((Request::get("/readyz").send(&place).await.status == 200).then_some(()))
    })
    .await
    .unwrap();
    check_reads(&mut described, &place).await;
    for (method, path) in described.operations() {
        described.check(&place, &Request::new(&method, &path).with(FOREIGN), 403).await;
    }
    described.is_covered_except(&[]);
}

#[tokio::test]
async fn recorded_progress_and_history_fit_their_schemas() {
    let (_reporter, place) = reporter();
    for (path, file) in [("/v1/progress", "progress.json"), ("/v1/history", "history.json")] {
        let body = Request::get(path).send(&place).await.body;
        let value = serde_json::from_str(&body).unwrap();
        let validator = crate::validator::Validator::new(crate::schema(file));
        validator.check(&value).unwrap();
        assert!(validator.check(&serde_json::json!({"schema": 1})).is_err());
    }
}
