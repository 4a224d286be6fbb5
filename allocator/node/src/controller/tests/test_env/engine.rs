//! A fake container engine with the part of Docker's API that the controller and the actuator use.

use std::path::Path;
use std::sync::Arc;

use paceline_runtime::Runtime;
use paceline_runtime::docker::Docker;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use super::container::{Container, Containers, EngineAnswers};
use super::http::{answer, request};

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
    let Some((status, body)) = respond(path, &body, containers) else {
        return std::future::pending().await;
    };
    stream.write_all(answer(status, &body.to_string()).as_bytes()).await.ok()
}

/// The engine's answer; `None` if it never comes.
fn respond(path: &str, body: &[u8], containers: &Containers) -> Option<(u16, Value)> {
    let mut containers = containers.lock().unwrap();
    let path = path.split('?').next().unwrap_or_default();
    let mut words = path.split('/').skip_while(|word| *word != "containers").skip(1);
    Some(match (words.next(), words.next()) {
        (Some("json"), None) => {
            let labelled = |one: &&Container| one.labels["paceline.enable"] == "true";
            let listed = containers.iter().filter(|(_, one)| labelled(one));
            (200, listed.map(|(id, _)| json!({"Id": id})).collect())
        }
        (Some(wanted), Some(what)) => {
            let found = containers.iter_mut().find(|(id, _)| id.starts_with(wanted));
            let Some((id, one)) = found else {
                return Some((404, json!({"message": "no such"})));
            };
            let describes = !matches!(what, "update" | "stop");
            one.described += usize::from(describes);
            match (one.answers, what) {
                (EngineAnswers::Never, _) => return None,
                (EngineAnswers::Refused, "update" | "stop") => {
                    one.refusals += 1;
                    (500, json!({"message": "refused"}))
                }
                (EngineAnswers::Done, "update") => {
                    one.update(&serde_json::from_slice(body).unwrap());
                    (200, json!({"Warnings": null}))
                }
                (EngineAnswers::Done, "stop") => {
                    let id = id.clone();
                    containers.remove(&id);
                    (200, Value::Null)
                }
                (EngineAnswers::Done | EngineAnswers::Refused, _) => (200, one.describe(id)),
            }
        }
        _ => (404, json!({"message": path})),
    })
}
