//! The allocator's page and API, and its control socket.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use paceline_api::clock::unix_seconds;
use paceline_api::live::{DaemonChannels, pair};
use paceline_node::migration::agent_actions::AgentActions;
use paceline_runtime::Runtime;
use paceline_runtime::docker::Docker;
use paceline_server::control::{self, Control};
use paceline_server::web::{self, Settings, Web};
use paceline_system_tests::{FakeDaemon, sample_snapshot, until};
use tempfile::TempDir;

use crate::description::Description;
use crate::fake_engine::FakeEngine;
use crate::http::{Place, Request};

const NAME: &str = "allocator-api.openapi.json";

/// Another machine's name.
const FOREIGN: &str = "host: allocator.example.org";

/// How many listeners of events the control socket has.
const LISTENERS: usize = 8;

/// Answers that need another user, or an allocator that is busy for half a minute.
const UNSEEN: &[(&str, &str, u16)] = &[("POST", "/v1/orders", 403), ("POST", "/v1/orders", 503)];

/// Answers of an agent's actions that need a container: tests on a Swarm have them.
const WITH_CONTAINER: &[(&str, &str, u16)] = &[
    ("POST", "/v1/containers/{id}/freeze", 200),
    ("POST", "/v1/containers/{id}/save", 200),
    ("POST", "/v1/containers/{id}/give-up", 409),
    ("POST", "/v1/containers/{id}/thaw", 409),
    ("POST", "/v1/services/{id}/discard", 409),
];

#[test]
fn description_has_exactly_the_routes_of_the_servers() {
    let control = control::routes().map(|(method, path)| (method, path.to_owned()));
    let routes: BTreeSet<_> =
        web::routes().into_iter().chain(control).map(|(of, path)| (of.to_owned(), path)).collect();
    assert_eq!(Description::read(NAME).operations(), routes);
}

fn place(web: &Web) -> Place {
    Place::Tcp(web.address().to_string().parse().unwrap())
}

/// The paths of a document, with values for what is in braces.
fn filled(path: &str) -> String {
    path.replace("{id}", "4f2a").replace("{job}", "vae")
}

/// An agent on a fake engine without containers.
struct Agent {
    web: Web,
    folder: TempDir,
    _engine: FakeEngine,
    _channels: DaemonChannels,
}

impl Agent {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("engine.sock");
        let engine = FakeEngine::listen(&socket);
        let host = format!("unix://{}", socket.display());
        let docker = Docker::connect(&host).await.unwrap();
        let actions = AgentActions::new(Runtime::Docker(docker), "/proc".into());
        let token = folder.path().join("token");
        std::fs::write(&token, "a-token-of-the-test").unwrap();
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
        let listen = Some("127.0.0.1:0".parse().unwrap());
        let settings = Settings { listen, token_file: Some(token), ..Settings::default() };
        let (live, channels) = pair(sample_snapshot::snapshot(unix_seconds(), 1.0));
        let web = web::serve(&settings, live, Some(actions)).await.unwrap().unwrap();
        Self { web, folder, _engine: engine, _channels: channels }
    }

    fn bearer(&self) -> String {
        let token = std::fs::read_to_string(self.folder.path().join("token")).unwrap();
        format!("authorization: Bearer {token}")
    }
}

/// Whether an operation is answered by the page's server.
fn is_of_page((_, path): &(String, String)) -> bool {
    !["/v1/orders", "/v1/audit"].contains(&path.as_str())
}

async fn check_page(described: &mut Description) {
    let began = unix_seconds() - 60.0;
    let (web, channels) = sample_snapshot::page("127.0.0.1:0", began, 60).await.unwrap();
    let page = place(&web);
    for (method, path) in described.operations().into_iter().filter(is_of_page) {
        let path = match path.as_str() {
            "/v1/decisions" => "/v1/decisions?job=vae".to_owned(),
            path => filled(path),
        };
        described.check(&page, &Request::new(&method, &path).with(FOREIGN), 403).await;
        if method == "POST" {
            described.check(&page, &Request::new(&method, &path), 405).await;
        } else if path == "/readyz" {
            // A busy machine may not have asked in time.
            until("the jobs were sampled recently", || async {
                let now = sample_snapshot::snapshot(began, unix_seconds() - began);
                channels.snapshots.send_replace(Arc::new(now));
                Ok((Request::get("/readyz").send(&page).await.status == 200).then_some(()))
            })
            .await
            .unwrap();
            described.check(&page, &Request::get("/readyz"), 200).await;
        } else {
            let answer = described.check(&page, &Request::new(&method, &path), 200).await;
            if path == "/v1/events" {
                described.check_event(&answer, "Snapshot");
            }
        }
    }
    for (path, status) in
        [("/v1/decisions", 400), ("/v1/decisions?job=no", 404), ("/v1/jobs/no/history", 404)]
    {
        described.check(&page, &Request::get(path), status).await;
    }
}

async fn check_agent(described: &mut Description) {
    let agent = Agent::start().await;
    let place = place(&agent.web);
    for (method, path) in described.operations().into_iter().filter(is_of_page) {
        if !["/healthz", "/readyz"].contains(&path.as_str()) {
            described.check(&place, &Request::new(&method, &filled(&path)), 401).await;
        }
    }
    described.check(&place, &Request::get("/v1/status").with(agent.bearer()), 200).await;
    for (path, status) in [
        ("/v1/containers/4f2a/save", 409),
        ("/v1/containers/4f2a/freeze", 409),
        ("/v1/containers/4f2a/thaw", 200),
        ("/v1/containers/4f2a/give-up", 200),
        ("/v1/services/4f2a/discard", 200),
    ] {
        let action = Request::post(path, "").with(agent.bearer());
        described.check(&place, &action, status).await;
    }
}

/// A control socket whose log cannot be read.
fn without_log(folder: &Path) -> (Control, DaemonChannels, Place) {
    let path = folder.join("control.sock");
    let (live, channels) = pair(sample_snapshot::snapshot(unix_seconds(), 1.0));
    let control = control::serve(&path, live, folder.join("missing")).unwrap();
    (control, channels, Place::Unix(path))
}

async fn check_control(described: &mut Description) {
    let daemon = FakeDaemon::open(sample_snapshot::snapshot(unix_seconds(), 1.0)).unwrap();
    let place = Place::Unix(daemon.socket());
    let order = described.example("/v1/orders");
    assert!(described.allows("/v1/orders", &order));
    described.check(&place, &Request::post("/v1/orders", order), 200).await;
    let refused = r#"{"command": "release", "name": "never"}"#;
    assert!(described.allows("/v1/orders", refused));
    described.check(&place, &Request::post("/v1/orders", refused), 409).await;
    for wrong in [
        r#"{"command": "stop", "name": "vae"}"#,
        r#"{"command": "pin", "name": "vae", "share": 0}"#,
        r#"{"command": "manage", "name": "vae", "share": 1}"#,
        "",
    ] {
        assert!(!described.allows("/v1/orders", wrong), "{wrong}");
        described.check(&place, &Request::post("/v1/orders", wrong), 400).await;
    }
    described.check(&place, &Request::post("/v1/orders", " ".repeat(16 * 1024 + 1)), 413).await;
    // The socket waits 2 s for the rest.
    described.check(&place, &Request::post("/v1/orders", "{").without_its_body(), 408).await;
    described.check(&place, &Request::get("/v1/audit?last=20&job=vae"), 200).await;
    described.check(&place, &Request::get("/v1/audit?last=20"), 200).await;
    described.check(&place, &Request::get("/v1/audit"), 400).await;
    described.check(&place, &Request::get("/readyz"), 503).await;

    let folder = tempfile::tempdir().unwrap();
    let (_control, _channels, place) = without_log(folder.path());
    described.check(&place, &Request::get("/v1/audit?last=1"), 500).await;
    let mut open = Vec::new();
    for _ in 0..LISTENERS {
        open.push(described.check(&place, &Request::get("/v1/events"), 200).await.stream);
    }
    described.check(&place, &Request::get("/v1/events"), 503).await;
}

#[tokio::test]
async fn running_servers_answer_as_described() {
    let mut described = Description::read(NAME);
    check_page(&mut described).await;
    check_agent(&mut described).await;
    check_control(&mut described).await;
    described.is_covered_except(&[UNSEEN, WITH_CONTAINER].concat());
}
