use std::fs;
use std::path::Path;

use paceline_lines::observation::Phase;
use paceline_reporter::wire::{Rank, Validation};
use serde_json::{Value, json};

use super::*;
use crate::forward::testing::{Answer, OK, Receiving};
use crate::forward::{Forwarding, tests};
use crate::push::trainer_status;

/// A reading of a job at half of its steps.
fn reading(step: u64) -> Progress {
    let mut progress = tests::progress(1.0);
    progress.now = 1_767_225_600.7;
    (progress.step, progress.total_steps, progress.epoch) = (Some(step), Some(200), Some(2));
    progress.eval.value = Some(0.25);
    let held_out = Validation { value: 0.5, best: 0.5, count: 1, updated_at: 1.0 };
    progress.validation = Some(held_out);
    progress.signals.progress_ratio = Some(0.459);
    progress.signals.eta_seconds = Some(61.9);
    progress
}

fn variables(url: &str, token: &Path, certificate: Option<&Path>) -> Result<TrainJob, String> {
    TrainJob::from_environment(|name| match name {
        URL_VARIABLE => Some(url.into()),
        TOKEN_VARIABLE => Some(token.into()),
        CA_VARIABLE => certificate.map(Into::into),
        _ => None,
    })
}

fn send(target: &mut TrainJob, progress: Progress) -> Result<Outcome, String> {
    let item = Item::Reading { progress: progress.into(), is_last: false };
    target.send(&item, &Ending::new())
}

#[test]
fn body_is_as_the_controller_reads_it_and_the_token_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let (token, certificate) = (folder.path().join("token"), folder.path().join("ca.crt"));
    let (server, pem) = Receiving::secure(&[OK]);
    fs::write(&certificate, pem).unwrap();
    fs::write(&token, "first\n").unwrap();
    let path = "apis/trainer.kubeflow.org/v1alpha1/namespaces/ml/trainjobs/vae/status";
    let url = format!("https://localhost:{}/{path}", server.address.port());
    let mut target = variables(&url, &token, Some(&certificate)).unwrap();
    assert_eq!(send(&mut target, reading(90)), Ok(Outcome::Sent));
    let first = server.next();
    assert_eq!(first.line, format!("POST /{path} HTTP/1.1"));
    assert!(first.headers.contains("authorization: Bearer first\n"), "{}", first.headers);
    assert!(first.headers.contains("content-type: application/json\n"), "{}", first.headers);
    let body: Value = serde_json::from_str(&first.body).unwrap();
    assert_eq!(
        body,
        json!({"trainerStatus": {
            "lastUpdatedTime": "2026-01-01T00:00:00Z",
            "progressPercentage": 45,
            "estimatedRemainingSeconds": 61,
            "metrics": [
                {"name": "loss", "value": "0.25"},
                {"name": "validation_loss", "value": "0.5"},
                {"name": "current_step", "value": "90"},
                {"name": "total_steps", "value": "200"},
                {"name": "current_epoch", "value": "2"},
            ],
        }})
    );
    // The same status is not sent again, and a rotated token is used.
    assert_eq!(send(&mut target, reading(90)), Ok(Outcome::Nothing));
    fs::write(&token, "second").unwrap();
    assert_eq!(send(&mut target, reading(91)), Ok(Outcome::Sent));
    assert!(server.next().headers.contains("authorization: Bearer second\n"));
    // Our own endpoint reads the body as the same job.
    let observed = trainer_status::parse(first.body.as_bytes()).unwrap();
    assert_eq!((observed.step, observed.total_steps), (Some(90), Some(200)));
    let losses: Vec<_> = observed.losses.iter().map(|loss| (loss.phase, loss.value)).collect();
    assert_eq!(losses, [(Phase::Train, 0.25), (Phase::Validation, 0.5)]);
}

#[test]
fn updates_are_at_least_five_seconds_apart_also_the_last() {
    let folder = tempfile::tempdir().unwrap();
    let (token, certificate) = (folder.path().join("token"), folder.path().join("ca.crt"));
    let (server, pem) = Receiving::secure(&[OK]);
    fs::write(&certificate, pem).unwrap();
    fs::write(&token, "secret").unwrap();
    let url = format!("https://localhost:{}/", server.address.port());
    let target = variables(&url, &token, Some(&certificate)).unwrap();
    let forwarding = Forwarding::start(vec![Box::new(target)]).unwrap();
    forwarding.publish(&reading(1), false);
    let first = server.next();
    for step in 2..100 {
        forwarding.publish(&reading(step), false);
    }
    let mut last = reading(100);
    last.state = State::Finished;
    forwarding.publish(&last, true);
    forwarding.close(Duration::from_mins(1));
    let second = server.next();
    assert!(second.at >= first.at + SPACING, "{:?} {:?}", first.at, second.at);
    assert!(second.body.contains("\"progressPercentage\":100,\"estimatedRemainingSeconds\":0"));
    assert!(server.requests.try_recv().is_err());
}

#[test]
fn server_with_another_certificate_gets_no_token() {
    let folder = tempfile::tempdir().unwrap();
    let (token, certificate) = (folder.path().join("token"), folder.path().join("ca.crt"));
    let (server, _) = Receiving::secure(&[OK]);
    let (_, other) = Receiving::secure(&[OK]);
    fs::write(&certificate, other).unwrap();
    fs::write(&token, "secret").unwrap();
    let url = format!("https://localhost:{}/", server.address.port());
    let mut target = variables(&url, &token, Some(&certificate)).unwrap();
    let error = send(&mut target, reading(1)).unwrap_err();
    assert!(error.starts_with("cannot agree on TLS: "), "{error}");
    assert!(server.requests.try_recv().is_err());
    fs::write(&certificate, "nothing").unwrap();
    let error = send(&mut target, reading(1)).unwrap_err();
    assert!(error.ends_with("it contains no certificate"), "{error}");
    fs::remove_file(&token).unwrap();
    let error = send(&mut target, reading(1)).unwrap_err();
    assert!(error.starts_with("cannot read the token "), "{error}");
}

#[test]
fn refusal_names_status_and_message_but_no_token() {
    let folder = tempfile::tempdir().unwrap();
    let (token, certificate) = (folder.path().join("token"), folder.path().join("ca.crt"));
    let text = "{\"kind\":\"Status\",\"message\":\"audience\nis wrong\"}";
    let (server, pem) = Receiving::secure(&[Answer::Status("403 Forbidden", text)]);
    fs::write(&certificate, pem).unwrap();
    fs::write(&token, "s3cr3t").unwrap();
    let url = format!("https://localhost:{}/", server.address.port());
    let mut target = variables(&url, &token, Some(&certificate)).unwrap();
    let error = send(&mut target, reading(1)).unwrap_err();
    assert_eq!(
        error,
        "the answer is 403 Forbidden: {\"kind\":\"Status\",\"message\":\"audienceis wrong\"}"
    );
    assert!(!format!("{target:?}").contains("s3cr3t"));
}

#[test]
fn further_ranks_and_unknown_values_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let mut target = variables("https://localhost:1/", &folder.path().join("token"), None).unwrap();
    let mut progress = reading(1);
    progress.rank = Some(Rank { global: 1, local: None, world: Some(2) });
    assert_eq!(send(&mut target, progress), Ok(Outcome::Nothing));
    let empty = status(&tests::progress(1.0));
    assert_eq!(serde_json::to_string(&empty).unwrap(), "{}");
    let mut progress = reading(200);
    progress.signals.progress_ratio = Some(1.0);
    assert_eq!(status(&progress).progress_percentage, Some(99), "it has not finished");
    progress.signals.eta_seconds = Some(f64::INFINITY);
    assert_eq!(status(&progress).estimated_remaining_seconds, Some(i32::MAX));
}

#[test]
fn missing_and_unsafe_variables_are_named() {
    let none = TrainJob::from_environment(|_| None).unwrap_err();
    assert!(none.starts_with("KUBEFLOW_TRAINER_SERVER_URL is not set; "), "{none}");
    let token = Path::new("/token");
    let plain = variables("http://user:word@trainer:8082/x", token, None).unwrap_err();
    assert_eq!(
        plain,
        "invalid KUBEFLOW_TRAINER_SERVER_URL \"http://trainer:8082\": expected https://, because a \
         token is sent"
    );
    let url = |name| (name == URL_VARIABLE).then(|| "https://trainer:8082/x".into());
    let error = TrainJob::from_environment(url).unwrap_err();
    assert!(error.starts_with("KUBEFLOW_TRAINER_SERVER_TOKEN is not set"), "{error}");
}
