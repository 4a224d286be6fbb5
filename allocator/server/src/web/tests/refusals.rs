//! Settings that are refused at the start.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use paceline_api::live::pair;
use paceline_api::usage::BadUsage;
use paceline_node::migration::agent_actions::AgentActions;
use paceline_runtime::docker::Docker;
use tokio::net::TcpStream;

use super::client::ask;
use super::example::example;
use crate::web::{Address, Settings, serve};

fn listen(address: &str) -> Settings {
    Settings { listen: Some(address.parse().unwrap()), ..Settings::default() }
}

async fn refused(settings: &Settings) -> String {
    let (live, _channels) = pair(example(0.0));
    let error = serve(settings, live, None).await.unwrap_err();
    assert!(error.is::<BadUsage>(), "{error:#}");
    let said = error.to_string();
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

#[tokio::test]
async fn address_for_other_machines_needs_a_token_and_tls() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "0123456789abcdef").unwrap();
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:7224"] {
        let only_token = Settings { token_file: Some(token.clone()), ..listen(address) };
        for settings in [listen(address), only_token] {
            let said = refused(&settings).await;
            assert!(said.contains(address) && said.contains("127.0.0.1:7224"), "{said}");
        }
    }
}

#[tokio::test]
async fn incomplete_tls_and_missing_files_are_refused() {
    let nowhere = Some("/nowhere/file.pem".into());
    let certificate = Settings { tls_certificate: nowhere.clone(), ..listen("127.0.0.1:0") };
    assert!(refused(&certificate).await.contains("tls_key"));
    let key = Settings { tls_key: nowhere.clone(), ..listen("127.0.0.1:0") };
    assert!(refused(&key).await.contains("tls_certificate"));
    let both = Settings { tls_key: nowhere.clone(), ..certificate };
    assert!(refused(&both).await.contains("/nowhere/file.pem"));
    let token = Settings { token_file: nowhere, ..listen("127.0.0.1:0") };
    assert!(refused(&token).await.contains("/nowhere/file.pem"));
}

#[tokio::test]
async fn nothing_is_served_with_listen_none() {
    let (live, _channels) = pair(example(0.0));
    assert!(serve(&listen("none"), live, None).await.unwrap().is_none());
}

#[tokio::test]
async fn taken_port_is_an_error_if_it_was_given() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (live, _channels) = pair(example(0.0));
    let error = serve(&listen(&address), live, None).await.unwrap_err();
    assert!(format!("{error:#}").contains(&address), "{error:#}");
}

#[tokio::test]
async fn actions_are_refused_without_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    drop(UnixListener::bind(&socket).unwrap());
    let docker = Docker::at(&format!("unix://{}", socket.display())).unwrap();
    let (live, _channels) = pair(example(0.0));
    let actions = Some(AgentActions::new(docker.into(), "/proc".into()));
    let web = serve(&listen("127.0.0.1:0"), live, actions).await.unwrap().unwrap();
    let Address::Tcp(address) = web.address() else { panic!("it listens on a port") };
    let asked = async |line: &str, headers: &str| {
        ask(TcpStream::connect(address).await.unwrap(), line, headers).await
    };
    let freeze = "POST /v1/containers/c0ffee/freeze";
    let refused = asked(freeze, "host: localhost\r\n").await;
    assert!(
        refused.starts_with("HTTP/1.1 403") && refused.contains("without a token"),
        "{refused}"
    );
    let strangers = asked(freeze, "host: evil.example\r\n").await;
    assert!(
        strangers.starts_with("HTTP/1.1 403") && strangers.contains("localhost"),
        "{strangers}"
    );
    let read = asked("GET /v1/containers/c0ffee/freeze", "host: localhost\r\n").await;
    assert!(read.starts_with("HTTP/1.1 404"), "{read}");
}
