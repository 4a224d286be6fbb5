use std::future::poll_fn;
use std::pin::Pin;

use hyper::body::Body;
use hyper::{Method, Request, Response};
use paceline_reporter::Reporter;
use tempfile::TempDir;

use super::reply::Reply;
use super::routes::{JOB, LIST};
use super::*;
use crate::discover::Search;

/// Routes that know one job, at a socket in a folder.
struct Stage {
    _folder: TempDir,
    reporter: Option<Reporter>,
    routes: Routes,
    key: String,
}

impl Stage {
    async fn set() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = format!("unix:{}", folder.path().join("vae.sock").display());
        let reporter = Reporter::builder("vae").listen(&socket).hide_address().start().unwrap();
        reporter.record(Some(0.5), None);
        let (board, _) = watcher::once(&Search::of_folder(folder.path())).await;
        let key = board.read(|jobs| jobs.iter().next().unwrap().address.key());
        let routes = Routes::new(Arc::new(board));
        Self { _folder: folder, reporter: Some(reporter), routes, key }
    }

    async fn send(&self, request: hyper::http::request::Builder) -> (u16, String, String) {
        read(self.routes.answer(request.body(()).unwrap()).await).await
    }

    /// Status, content type and body of a GET request.
    async fn get(&self, path: &str) -> (u16, String, String) {
        self.send(Request::get(path).header("host", "127.0.0.1:7222")).await
    }

    fn path(&self, rest: &str) -> String {
        format!("/jobs/{}/{rest}", self.key)
    }
}

async fn read(mut response: Response<Reply>) -> (u16, String, String) {
    let header = response.headers().get("content-type").unwrap().to_str().unwrap().to_owned();
    assert_eq!(response.headers().get("x-content-type-options").unwrap(), "nosniff");
    let body = response.body_mut();
    let mut text = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await {
        text.extend_from_slice(&frame.unwrap().into_data().unwrap());
    }
    (response.status().as_u16(), header, String::from_utf8(text).unwrap())
}

#[tokio::test]
async fn list_names_every_job_with_its_figures() {
    let stage = Stage::set().await;
    let (status, kind, body) = stage.get("/v1/jobs").await;
    assert_eq!((status, kind.as_str()), (200, "application/json"));
    let list: serde_json::Value = serde_json::from_str(&body).unwrap();
    let job = &list["jobs"][0];
    assert_eq!(
        (job["key"].as_str(), job["standing"].as_str()),
        (Some(&*stage.key), Some("answers"))
    );
    assert_eq!((job["progress"]["job"].as_str(), job["page"].is_null()), (Some("vae"), true));
    assert_eq!(job["progress"]["eval"]["value"], 0.5);
    assert_eq!(stage.get("/").await, (200, "text/html; charset=utf-8".into(), LIST.into()));
    assert_eq!(stage.get("/healthz").await.0, 200);
}

#[tokio::test]
async fn page_of_a_job_and_what_it_reads_pass_through() {
    let stage = Stage::set().await;
    assert_eq!(
        stage.get(&stage.path("")).await,
        (200, "text/html; charset=utf-8".into(), JOB.into())
    );
    let (status, kind, body) = stage.get(&stage.path("v1/progress")).await;
    assert_eq!((status, kind.as_str()), (200, "application/json"));
    assert!(body.contains(r#""job":"vae""#), "{body}");
    for (path, kind, part) in [
        ("v1/history", "application/json", "\"loss_smoothed\""),
        ("v1/history?after=1e9", "application/json", "\"loss_smoothed\""),
        ("metrics", "text/plain", "paceline_loss"),
    ] {
        let (status, found, body) = stage.get(&stage.path(path)).await;
        assert!(status == 200 && found.starts_with(kind) && body.contains(part), "{path}: {body}");
    }
    let (status, _, body) = stage.get(&stage.path("v1/history?after=soon")).await;
    assert!(status == 400 && body.contains("after=1760000000.5"), "{body}");
}

#[tokio::test]
async fn events_of_a_job_pass_through_until_its_end() {
    let mut stage = Stage::set().await;
    let path = stage.path("v1/events");
    let request = Request::get(path).body(()).unwrap();
    let response = stage.routes.answer(request).await;
    let reporter = stage.reporter.take().unwrap();
    reporter.finish();
    drop(reporter);
    let (status, kind, body) = read(response).await;
    assert_eq!((status, kind.as_str()), (200, "text/event-stream"));
    let last = body.trim_end().rsplit("data: ").next().unwrap();
    assert!(last.contains(r#""state":"finished""#), "{body}");
    let (status, _, body) = stage.get(&stage.path("v1/progress")).await;
    assert!(status == 502 && body.starts_with("cannot read unix:"), "{body}");
}

#[tokio::test]
async fn unknown_jobs_and_paths_are_not_asked() {
    let stage = Stage::set().await;
    for path in ["/nothing", "/jobs/", "/jobs/1", "/jobs/1/", "/jobs/127.0.0.1:80/v1/progress"] {
        assert_eq!(stage.get(path).await.0, 404, "{path}");
    }
    for rest in ["v1/checkpoint", "v1/report", "healthz", "v1/../metrics", "/v1/progress"] {
        assert_eq!(stage.get(&stage.path(rest)).await.0, 404, "{rest}");
    }
    let request = Request::get(format!("/jobs/{}", stage.key)).body(()).unwrap();
    let response = stage.routes.answer(request).await;
    assert_eq!(response.headers().get("location").unwrap(), &format!("/jobs/{}/", stage.key)[..]);
}

#[tokio::test]
async fn only_reads_of_this_machine_are_answered() {
    let stage = Stage::set().await;
    for method in [Method::POST, Method::PUT, Method::DELETE] {
        let path = stage.path("v1/checkpoint");
        assert_eq!(stage.send(Request::builder().method(method).uri(path)).await.0, 405);
    }
    assert_eq!(stage.reporter.as_ref().unwrap().progress().unwrap().checkpoint.requested, 0);
    let (status, _, said) =
        stage.send(Request::get("/v1/jobs").header("host", "evil.example")).await;
    assert!(status == 403 && said.contains("localhost"), "{said}");
    let strange = Request::get(stage.path("v1/progress")).header("sec-fetch-site", "cross-site");
    assert_eq!(stage.send(strange.header("sec-fetch-mode", "no-cors")).await.0, 403);
    let head = Request::head(stage.path("v1/events"));
    assert_eq!(stage.send(head).await, (200, "text/event-stream".into(), String::new()));
}

#[tokio::test]
async fn only_loopback_addresses_are_listened_on() {
    for address in ["0.0.0.0:0", "[::]:0", "10.0.0.1:0"] {
        let Err(Error::Usage(why)) = bind(Some(address)).await else { panic!("{address}") };
        assert!(why.contains("ssh -L"), "{why}");
    }
    assert!(matches!(bind(Some("nothing")).await, Err(Error::Usage(_))));
    let bound = bind(Some("127.0.0.1:0")).await.unwrap();
    let taken = bound.local_addr().unwrap().to_string();
    assert!(matches!(bind(Some(&taken)).await, Err(Error::Usage(why)) if why.contains(&taken)));
    let [one, other] = [bind(None).await.unwrap(), bind(None).await.unwrap()];
    assert_ne!(one.local_addr().unwrap(), other.local_addr().unwrap(), "a free port in its place");
}

#[test]
fn pages_load_nothing_from_elsewhere_and_text_is_never_markup() {
    for page in [LIST, JOB] {
        let own = page.replace("http://www.w3.org/2000/svg", "");
        for way in ["://", " src=", "<link rel=\"stylesheet", "import(", "@import"] {
            assert!(!own.contains(way), "a page has {way}");
        }
        for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            assert!(!page.contains(way), "a page uses {way}");
        }
    }
}
