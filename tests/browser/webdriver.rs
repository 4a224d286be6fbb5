//! A headless browser, driven over the `WebDriver` protocol.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

/// The longest wait for an answer of the driver.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(90);

/// The programs that the tests need.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    driver: PathBuf,
    browser: PathBuf,
}

impl Programs {
    /// Their paths, if both are installed.
    pub(crate) fn find() -> Option<Self> {
        let browser = ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(find);
        Some(Self { driver: find("chromedriver")?, browser: browser? })
    }
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// How often the driver is started. It looks for a port that is free for IPv4 and for IPv6, and ends if another
/// program is quicker.
const MAX_STARTS: usize = 5;

/// Starts the driver: its process, its output and its port.
fn start_driver(programs: &Programs) -> anyhow::Result<(Child, BufReader<ChildStdout>, u16)> {
    let start = || {
        let mut driver = Command::new(&programs.driver)
            .args(["--port=0", "--log-level=SEVERE"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let said = driver.stdout.take().context("stdout is piped")?;
        let mut said = BufReader::new(said);
        let port = port(&mut said).inspect_err(|_| end(&mut driver))?;
        Ok((driver, said, port))
    };
    let mut started = start();
    for _ in 1..MAX_STARTS {
        if started.is_ok() {
            break;
        }
        started = start();
    }
    started
}

/// A browser with one window. Dropping this ends it.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    /// Kept open: writing to a closed pipe would end the driver.
    _said: BufReader<ChildStdout>,
    _profile: tempfile::TempDir,
}

impl Browser {
    pub(crate) fn start(programs: &Programs) -> anyhow::Result<Self> {
        let profile = tempfile::tempdir()?;
        let (driver, said, port) = start_driver(programs)?;
        let folder = profile.path().display().to_string();
        let mut browser =
            Self { driver, port, session: String::new(), _said: said, _profile: profile };
        let mut args = vec![
            "--headless=new".to_owned(),
            "--disable-gpu".to_owned(),
            "--window-size=1280,900".to_owned(),
            "--hide-scrollbars".to_owned(),
            format!("--user-data-dir={folder}"),
        ];
        if rustix::process::geteuid().is_root() {
            args.push("--no-sandbox".to_owned());
        }
        let wishes = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"binary": programs.browser, "args": args},
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let made = browser.call("POST", "/session", &wishes)?;
        made["sessionId"].as_str().context("a session has an id")?.clone_into(&mut browser.session);
        Ok(browser)
    }

    /// Opens an address and waits until it is loaded.
    pub(crate) fn open(&self, address: &str) -> anyhow::Result<()> {
        self.command("url", &json!({"url": address})).map(drop)
    }

    /// Runs the body of a function in the page; returns its result.
    pub(crate) fn run(&self, body: &str) -> anyhow::Result<Value> {
        self.command("execute/sync", &json!({"script": body, "args": []}))
    }

    /// Waits until the body of a function returns true.
    pub(crate) fn until(&self, what: &str, body: &str) -> anyhow::Result<()> {
        let waits = format!(
            "const done = arguments[0]; const look = () => {{ {body} }};
             const often = setInterval(() => {{ if (look()) {{ clearInterval(often); done(true); }} }}, 50);
             setTimeout(() => done(false), 60000);"
        );
        self.command("timeouts", &json!({"script": 70_000}))?;
        let came = self.command("execute/async", &json!({"script": waits, "args": []}))?;
        ensure!(came == true, "it never came to this: {what}");
        Ok(())
    }

    /// Sets the colour scheme and the size.
    pub(crate) fn look(&self, scheme: &str, width: u32, height: u32) -> anyhow::Result<()> {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.devtools("Emulation.setEmulatedMedia", &json!({"features": features}))?;
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", &size)
    }

    /// The browser's log since the last call.
    pub(crate) fn complaints(&self) -> anyhow::Result<Value> {
        self.command("se/log", &json!({"type": "browser"}))
    }

    /// A screenshot of the page: a PNG in base64.
    pub(crate) fn picture(&self) -> anyhow::Result<String> {
        let path = format!("/session/{}/screenshot", self.session);
        let picture = self.call("GET", &path, &Value::Null)?;
        Ok(picture.as_str().context("a picture is text")?.to_owned())
    }

    fn devtools(&self, command: &str, params: &Value) -> anyhow::Result<()> {
        self.command("goog/cdp/execute", &json!({"cmd": command, "params": params})).map(drop)
    }

    fn command(&self, name: &str, body: &Value) -> anyhow::Result<Value> {
        self.call("POST", &format!("/session/{}/{name}", self.session), body)
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> anyhow::Result<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n",
            self.port
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        let answer = body_of(BufReader::new(stream))?;
        let mut said: Value = serde_json::from_slice(&answer)?;
        let value = said.get_mut("value").map(Value::take).unwrap_or_default();
        match value.get("error") {
            Some(error) => bail!("{method} {path}: {error}: {}", value["message"]),
            None => Ok(value),
        }
    }
}

/// The body of an answer. Its length is read from the head, since the driver keeps the connection open.
fn body_of(mut answer: impl BufRead) -> anyhow::Result<Vec<u8>> {
    let mut length = None;
    loop {
        let mut line = String::new();
        ensure!(answer.read_line(&mut line)? > 0, "the head breaks off");
        if line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        if name.eq_ignore_ascii_case("content-length") {
            length = Some(value.trim().parse()?);
        }
    }
    let mut body = vec![0; length.context("an answer has a length")?];
    answer.read_exact(&mut body)?;
    Ok(body)
}

/// The port that the driver reports.
fn port(said: impl BufRead) -> anyhow::Result<u16> {
    for line in said.lines() {
        let line = line?;
        if let Some((_, rest)) = line.split_once("successfully on port ") {
            return Ok(rest.trim_end_matches('.').parse()?);
        }
    }
    bail!("the driver did not start")
}

/// Ends a driver and its browser, which is in the same process group.
fn end(driver: &mut Child) {
    let group = i32::try_from(driver.id()).ok().and_then(Pid::from_raw);
    if group.is_none_or(|group| kill_process_group(group, Signal::KILL).is_err()) {
        drop(driver.kill());
    }
    drop(driver.wait());
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            let path = format!("/session/{}", self.session);
            // If this fails, `end` kills the browser.
            drop(self.call("DELETE", &path, &Value::Null));
        }
        end(&mut self.driver);
    }
}
