use bollard::Docker;
use bollard::container::LogOutput;
use bollard::query_parameters::LogsOptionsBuilder;
use futures_util::StreamExt;

/// Everything that a container has printed.
pub(crate) async fn printed(docker: &Docker, container: &str) -> anyhow::Result<String> {
    let options = LogsOptionsBuilder::default().stdout(true).stderr(true).build();
    let mut pieces = std::pin::pin!(docker.logs(container, Some(options)));
    let mut log = Vec::new();
    while let Some(piece) = pieces.next().await {
        log.extend_from_slice(LogOutput::as_ref(&piece?));
    }
    Ok(String::from_utf8(log)?)
}
