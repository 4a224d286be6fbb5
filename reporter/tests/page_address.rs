//! What a reporter prints at its start.

use std::process::Command;

use paceline_reporter::Reporter;

/// Set in the process whose standard error is read: the rank that it has.
const CHILD: &str = "PACELINE_TEST_RANK";

/// Runs this test again in a process that starts a reporter, and returns what that prints.
fn printed(rank: &str, hidden: &str) -> String {
    let mut again = Command::new(std::env::current_exe().expect("the test is a program"));
    again.args(["address_is_printed_once_by_the_first_rank", "--exact", "--nocapture"]);
    again.env(CHILD, rank).env("PACELINE_HIDE_ADDRESS", hidden);
    again.env("PACELINE_LISTEN", "127.0.0.1:0").env("RANK", rank).env("LOCAL_RANK", rank);
    let output = again.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stderr).expect("it is text")
}

#[test]
fn address_is_printed_once_by_the_first_rank() {
    if std::env::var_os(CHILD).is_some() {
        let reporter = Reporter::builder("vae").from_env().start().unwrap();
        eprintln!("at {}", reporter.local_addr().unwrap());
        return;
    }
    let shown = printed("0", "");
    let lines: Vec<&str> = shown.lines().collect();
    let address = lines.iter().find_map(|line| line.strip_prefix("at ")).unwrap();
    let path = if cfg!(feature = "page") { "" } else { "v1/progress" };
    let expected = format!("paceline-reporter: loss and progress: http://{address}/{path}");
    assert_eq!(lines.iter().filter(|line| **line == expected).count(), 1, "{shown}");
    assert_eq!(shown.matches("loss and progress").count(), 1, "{shown}");
    for (rank, hidden) in [("0", "1"), ("1", "")] {
        let said = printed(rank, hidden);
        assert!(!said.contains("loss and progress"), "rank {rank}: {said}");
    }
}
