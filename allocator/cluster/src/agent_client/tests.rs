//! A manager and an agent's server, over TLS on the loopback.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use bollard::Docker;
use paceline_api::live::{DaemonChannels, pair};
use paceline_node::migration::agent_actions::AgentActions;
use paceline_server::web::{self, Address, Web};
use tempfile::TempDir;

use super::*;

/// An agent's server, and the settings of a manager that it lets in.
struct Agent {
    folder: TempDir,
    web: Web,
    settings: Settings,
    _channels: DaemonChannels,
}

fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}

impl Agent {
    async fn start(hands: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(["agent".to_owned()]).unwrap();
        let token = file(folder.path(), "token", "0123456789abcdef");
        let certificate = file(folder.path(), "agent.pem", &made.cert.pem());
        let settings = web::Settings {
            listen: Some("0.0.0.0:0".parse().unwrap()),
            token_file: Some(token.clone()),
            tls_certificate: Some(certificate.clone()),
            tls_key: Some(file(folder.path(), "key", &made.signing_key.serialize_pem())),
            otlp: false,
        };
        let (live, channels) = pair(Snapshot { schema: SCHEMA, pid: 7, ..Snapshot::default() });
        let socket = folder.path().join("docker.sock");
        drop(UnixListener::bind(&socket).unwrap());
        let unused = Docker::connect_with_host(&format!("unix://{}", socket.display())).unwrap();
        let hands = hands.then(|| AgentActions::new(unused.into(), "/proc".into()));
        let web = web::serve(&settings, live, hands).await.unwrap().unwrap();
        let Address::Tcp(address) = web.address() else { panic!("it listens on a port") };
        let agent_port = address.rsplit_once(':').unwrap().1.parse().unwrap();
        let settings = Settings {
            agent_port,
            agent_token_file: token,
            agent_ca: certificate,
            agent_name: Some("agent".to_owned()),
        };
        Self { folder, web, settings, _channels: channels }
    }

    /// The result of asking it once.
    async fn asked(&self) -> Result<Snapshot, AskError> {
        let client = AgentClient::new(&self.settings).unwrap();
        let mut connection = client.connect("w1", "127.0.0.1").await?;
        client.status(&mut connection).await
    }

    async fn ordered(&self, order: AgentAction) -> Result<Done, AskError> {
        let client = AgentClient::new(&self.settings).unwrap();
        let mut connection = client.connect("w1", "127.0.0.1").await?;
        client.order(&mut connection, order, "c0ffee").await
    }
}

#[tokio::test]
async fn client_with_token_and_certificate_gets_the_status() {
    let mut agent = Agent::start(false).await;
    assert_eq!(agent.asked().await.unwrap().pid, 7);
    agent.settings.agent_name = Some("another".to_owned());
    let error = agent.asked().await.unwrap_err().to_string();
    assert!(error.contains("the agent at 127.0.0.1") && error.contains("cert"), "{error}");
    agent.settings.agent_name = None;
    assert!(agent.asked().await.is_err(), "the certificate does not contain the machine's name");
}

#[tokio::test]
async fn client_with_another_token_is_refused() {
    let mut agent = Agent::start(true).await;
    let other = file(agent.folder.path(), "other", "fedcba9876543210");
    agent.settings.agent_token_file = other;
    for error in
        [agent.asked().await.unwrap_err(), agent.ordered(AgentAction::Save).await.unwrap_err()]
    {
        assert!(
            error.to_string().contains("401 Unauthorized: it expects another token"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn actions_are_refused_with_a_reason() {
    let alone = Agent::start(false).await;
    let error = alone.ordered(AgentAction::Freeze).await.unwrap_err().to_string();
    assert!(error.contains("405"), "{error}");
    let agent = Agent::start(true).await;
    for order in [
        AgentAction::Save,
        AgentAction::Freeze,
        AgentAction::Thaw,
        AgentAction::GiveUp,
        AgentAction::Discard,
    ] {
        let error = agent.ordered(order).await.unwrap_err();
        let refused = matches!(&error, AskError::Refused(why) if why.contains("cannot describe"));
        assert!(refused, "{error:?}");
    }
}

#[tokio::test]
async fn unreachable_agent_is_named_by_its_address() {
    let Agent { web, settings, folder, .. } = Agent::start(false).await;
    drop(web);
    let client = AgentClient::new(&settings).unwrap();
    let Err(error) = client.connect("w1", "127.0.0.1").await else {
        panic!("connected to a stopped agent")
    };
    let place = format!("cannot reach the agent at 127.0.0.1:{}", settings.agent_port);
    assert!(error.to_string().starts_with(&place), "{error}");
    drop(folder);
}

#[tokio::test]
async fn invalid_settings_are_refused_by_name() {
    let agent = Agent::start(false).await;
    let refused = |settings: Settings| AgentClient::new(&settings).unwrap_err().to_string();
    let empty = file(agent.folder.path(), "empty", "");
    let said = refused(Settings { agent_ca: empty.clone(), ..agent.settings.clone() });
    assert!(said.contains("agent_ca") && said.contains("no certificate"), "{said}");
    let said = refused(Settings { agent_token_file: empty, ..agent.settings.clone() });
    assert!(said.contains("agent_token_file") && said.contains("at least 16"), "{said}");
    let said = refused(Settings { agent_name: Some("a b".to_owned()), ..agent.settings.clone() });
    assert!(said.contains("agent_name"), "{said}");
}
