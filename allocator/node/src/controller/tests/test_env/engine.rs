//! A fake container engine with the part of Docker's API that the controller and the actuator use.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use paceline_runtime::Runtime;
use paceline_runtime::docker::Docker;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use super::container::{Container, Containers, EngineAnswers};
use super::http::{answer, request};

/// How long a container takes to end that ends late.
const LATE_END: Duration = Duration::from_millis(300);

/// Starts an engine with Docker's API.
pub(super) fn docker(place: &Path, containers: &Containers, tasks: &mut JoinSet<()>) -> Runtime {
    let socket = place.join("engine.sock");
    tasks.spawn(serve(UnixListener::bind(&socket).unwrap(), Arc::clone(containers)));
    Docker::at(&format!("unix://{}", socket.display())).unwrap().into()
}

async fn serve(listener: UnixListener, containers: Containers) {
    let mut connections = JoinSet::new();
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let containers = Arc::clone(&containers);
        connections.spawn(async move { while turn(&mut stream, &containers).await.is_some() {} });
    }
}

async fn turn(stream: &mut UnixStream, containers: &Containers) -> Option<()> {
    let (head, body) = request(stream).await?;
    let path = head.split(' ').nth(1)?;
    if path.contains("/events") && path.contains("until=") {
        return stream.write_all(answer(200, "").as_bytes()).await.ok();
    }
    if path.contains("/events") {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).await.ok()?;
        return std::future::pending().await;
    }
    if ends_late(path, containers) {
        tokio::time::sleep(LATE_END).await;
    }
    let Some((status, body)) = respond(path, &body, containers) else {
        return std::future::pending().await;
    };
    stream.write_all(answer(status, &body.to_string()).as_bytes()).await.ok()
}

/// Whether a request is to end a container that ends late.
fn ends_late(path: &str, containers: &Containers) -> bool {
    containers.lock().unwrap().iter().any(|(id, one)| {
        one.answers == EngineAnswers::EndsLate && path.contains(&format!("/{id}/stop"))
    })
}

/// The engine's answer; `None` if it never comes.
fn respond(path: &str, body: &[u8], containers: &Containers) -> Option<(u16, Value)> {
    let mut containers = containers.lock().unwrap();
    let path = path.split('?').next().unwrap_or_default();
    let mut words = path.split('/').skip_while(|word| *word != "containers").skip(1);
    Some(match (words.next(), words.next()) {
        (Some("json"), None) => {
            let is_listed =
                |one: &&Container| one.exists && one.labels["paceline.enable"] == "true";
            let listed = containers.iter().filter(|(_, one)| is_listed(one));
            (200, listed.map(|(id, _)| json!({"Id": id})).collect())
        }
        (Some(wanted), Some(what)) => {
            let mut existing = containers.iter_mut().filter(|(_, one)| one.exists);
            let found = existing.find(|(id, _)| id.starts_with(wanted));
            let Some((id, one)) = found else {
                return Some((404, json!({"message": "no such"})));
            };
            let describes = !matches!(what, "update" | "stop");
            one.described += usize::from(describes);
            match (one.answers, what) {
                (EngineAnswers::Never, _) => return None,
                (EngineAnswers::Refused, "update" | "stop")
                | (EngineAnswers::KeepsRunning, "stop") => {
                    one.refusals += 1;
                    (500, json!({"message": "refused"}))
                }
                (
                    EngineAnswers::Done | EngineAnswers::KeepsRunning | EngineAnswers::EndsLate,
                    "update",
                ) => {
                    one.update(&serde_json::from_slice(body).unwrap());
                    (200, json!({"Warnings": null}))
                }
                (EngineAnswers::Done | EngineAnswers::EndsLate, "stop") => {
                    one.exists = false;
                    (200, Value::Null)
                }
                (
                    EngineAnswers::Done
                    | EngineAnswers::Refused
                    | EngineAnswers::KeepsRunning
                    | EngineAnswers::EndsLate,
                    _,
                ) => (200, one.describe(id)),
            }
        }
        _ => (404, json!({"message": path})),
    })
}
