//! The container engine, its clock, and the containers that have opted in.

use std::time::Duration;

use paceline_api::clock::unix_seconds;
use paceline_api::figures::counted;
use paceline_api::stamp;
use paceline_runtime::{Description, Runtime};

use super::super::engine::EngineArgs;
use super::report::Finding;

/// How long the engine may take for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// A larger difference between two clocks is reported, in seconds.
const MAX_DIFFERENCE: f64 = 5.0;

/// Connects to the engine.
pub(super) async fn connect(args: &EngineArgs) -> Result<(Runtime, Description), Finding> {
    let asked = async {
        let runtime = args.connect().await?;
        let description = runtime.describe().await?;
        anyhow::Ok((runtime, description))
    };
    let why = match tokio::time::timeout(ANSWER_TIMEOUT, asked).await {
        Ok(Ok(connected)) => return Ok(connected),
        Ok(Err(error)) => format!("{error:#}"),
        Err(_) => {
            format!("no answer from {} within {} s", args.address(), ANSWER_TIMEOUT.as_secs())
        }
    };
    let denied = why.contains("Permission denied");
    Err(Finding::error(
        "engine",
        why,
        if denied {
            "only root and members of its group may use it"
        } else {
            "start it, or give its address by --host (Docker) or --cri (Kubernetes)"
        },
    ))
}

/// The engine's description, and its clock beside ours.
pub(super) fn findings(description: &Description) -> Vec<Finding> {
    vec![engine(description), clock(description.time.as_deref(), unix_seconds())]
}

fn engine(description: &Description) -> Finding {
    let Description { id, name, cpus, version, cgroup_driver, .. } = description;
    let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    let found = format!(
        "version {} on {}, {} CPUs, cgroup driver {}",
        known(version),
        known(name),
        cpus.map_or_else(|| "unknown".to_owned(), |cpus| cpus.to_string()),
        known(cgroup_driver)
    );
    if id.is_none() || cpus.is_none_or(|cpus| cpus < 1) {
        let advice = "it must report its id and its CPUs; check `docker info`";
        return Finding::error("engine", found, advice);
    }
    Finding::ok("engine", found)
}

fn clock(engine: Option<&str>, now: f64) -> Finding {
    match engine.and_then(stamp::parse).map(|engine| engine - now) {
        None => Finding::ok("clock", "the engine does not report its time"),
        Some(difference) if difference.abs() > MAX_DIFFERENCE => Finding::warning(
            "clock",
            format!("the engine's clock differs by {difference:.0} s"),
            "set both; times in the audit log and of containers cannot be compared",
        ),
        Some(_) => Finding::ok("clock", "as the engine's"),
    }
}

/// The containers that have opted in.
pub(super) async fn jobs(runtime: &Runtime) -> Finding {
    match tokio::time::timeout(ANSWER_TIMEOUT, runtime.opted_in(&[])).await {
        Ok(Ok(ids)) if ids.is_empty() => Finding::ok(
            "jobs",
            if runtime.is_of_kubernetes() {
                "no running pod has the label paceline.dev/enable=true"
            } else {
                "no running container has the label paceline.enable=true"
            },
        ),
        Ok(Ok(ids)) => {
            let found = format!("opted in: {}", counted(ids.len(), "running container"));
            Finding::ok("jobs", found + "; `paceline check NAME` examines one")
        }
        Ok(Err(error)) => {
            let error = anyhow::Error::from(error);
            let advice = "check the engine's log";
            Finding::error("jobs", format!("cannot list containers: {error:#}"), advice)
        }
        Err(_) => {
            let found = format!("no list of containers within {} s", ANSWER_TIMEOUT.as_secs());
            Finding::error("jobs", found, "check the engine's log")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Level;
    use super::*;

    #[test]
    fn clocks_that_differ_are_reported() {
        let now = 1_795_263_376.0;
        for (engine, level) in [
            (Some("2026-11-21T12:16:16.25Z"), Level::Ok),
            (Some("2026-11-21T13:16:17.25+01:00"), Level::Ok),
            (Some("2026-11-21T12:17:16Z"), Level::Warning),
            (Some("2026-11-21T12:16:16+01:00"), Level::Warning),
            (Some("yesterday"), Level::Ok),
            (None, Level::Ok),
        ] {
            assert_eq!(clock(engine, now).level, level, "{engine:?}");
        }
    }

    #[test]
    fn engine_without_id_or_cpus_is_an_error() {
        let whole = Description {
            id: Some("AB".to_owned()),
            cpus: Some(4),
            version: Some("29.0".to_owned()),
            ..Description::default()
        };
        let found = engine(&whole);
        assert_eq!(found.level, Level::Ok);
        assert!(found.found.starts_with("version 29.0 on unknown, 4 CPUs"), "{found:?}");
        for broken in [
            Description { id: None, ..whole.clone() },
            Description { cpus: Some(0), ..whole.clone() },
        ] {
            assert_eq!(engine(&broken).level, Level::Error);
        }
    }
}
