//! What scripts rely on: exit codes, and that help and errors say what they must.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::process::Output;

use paceline_system_tests::Allocator;

async fn paceline(words: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } =
        Allocator::command(words).unwrap().env_remove("DOCKER_HOST").output().await.unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[tokio::test]
async fn without_an_engine_it_ends_with_3_and_one_clear_line() {
    let folder = tempfile::tempdir().unwrap();
    let host = format!("unix://{}/no.sock", folder.path().display());
    for command in ["run", "restore"] {
        let (code, _, said) = paceline(&["--host", &host, command]).await;
        assert_eq!(code, Some(3), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains(&host) && said.contains("not reachable"), "{said}");
    }
}

#[tokio::test]
async fn bad_usage_ends_with_2_and_names_what_is_allowed() {
    for (words, parts) in [
        (&["run", "--policy", "best"][..], &["best", "none", "flowcon"][..]),
        (&["run", "--param", "alpha"], &["alpha", "name=number"]),
        (&["run", "--param", "beta=-1"], &["beta", "-1", "above 0"]),
        (&["run", "--param", "speed=1"], &["speed", "alpha"]),
        (&["run", "--variant", "exact"], &["exact", "resolved", "published"]),
        (&["fly"], &["fly"]),
    ] {
        let (code, _, said) = paceline(words).await;
        assert_eq!(code, Some(2), "{words:?}: {said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{words:?}: {said}");
    }
}

#[tokio::test]
async fn every_command_has_help_that_fits_the_page() {
    for command in ["", "run", "restore", "check", "bench"] {
        let words: Vec<&str> = [command, "--help"].into_iter().filter(|w| !w.is_empty()).collect();
        let (code, help, _) = paceline(&words).await;
        assert_eq!(code, Some(0));
        assert!(help.contains("Usage:"), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    }
}
