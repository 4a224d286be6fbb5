//! The jobs' moves between nodes, as the allocator's audit log tells of them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Deserialize;

use super::record::Move;

/// A line of the log, as far as it is about moves.
#[derive(Debug, Deserialize)]
struct Line {
    /// When it was written, in Unix seconds: a move is over then.
    at: f64,
    #[serde(flatten)]
    told: Told,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
enum Told {
    Moved {
        job: String,
        from: String,
        to: String,
        seconds: Option<f64>,
    },
    Stayed {
        job: String,
        /// Only where the move was begun.
        container: Option<String>,
        from: String,
        to: String,
        why: String,
        seconds: Option<f64>,
    },
    #[serde(other)]
    Else,
}

/// The moves in the audit log of the run in `folder`, which began at `began` in Unix seconds.
pub(crate) fn moves(folder: &Path, began: f64) -> anyhow::Result<Vec<Move>> {
    let mut moves = Vec::new();
    for path in logs(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        for (at, line) in text.lines().enumerate() {
            let line: Line = serde_json::from_str(line)
                .with_context(|| format!("{}:{}: not an entry", path.display(), at + 1))?;
            moves.extend(line.its_move(began));
        }
    }
    moves.sort_by(|a, b| a.t.total_cmp(&b.t));
    Ok(moves)
}

/// The log's files, oldest first: full ones have a number.
fn logs(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut logs = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        if stem.starts_with("audit") && path.extension().is_some_and(|its| its == "jsonl") {
            logs.push(path);
        }
    }
    logs.sort();
    Ok(logs)
}

impl Line {
    fn its_move(self, began: f64) -> Option<Move> {
        let (job, from, to, seconds, failed) = match self.told {
            Told::Moved { job, from, to, seconds } => (job, from, to, seconds, None),
            Told::Stayed { container: Some(_), job, from, to, why, seconds } => {
                (job, from, to, seconds, Some(why))
            }
            Told::Stayed { container: None, .. } | Told::Else => return None,
        };
        let seconds = seconds.unwrap_or(0.0);
        Some(Move { t: self.at - began - seconds, job, from, to, seconds, failed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_that_were_begun_are_told_whatever_came_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let older = r#"{"seq":1,"at":1012.5,"what":"moved","job":"a","container":"c","successor":"d","from":"n","to":"m","reason":"converged","saving":0.2,"seconds":2.5}"#;
        let current = r#"{"seq":2,"at":1001.0,"what":"decided","policy":"specon"}
{"seq":3,"at":1020.0,"what":"stayed","job":"b","container":"e","from":"m","to":"n","reason":"rebalance","why":"no report came","seconds":6.0}
{"seq":4,"at":1021.0,"what":"stayed","job":"b","container":null,"from":"m","to":"n","reason":"rebalance","why":"it keeps no checkpoints","seconds":null}
"#;
        fs::write(folder.path().join("audit-00000000000000000001.jsonl"), older).unwrap();
        fs::write(folder.path().join("audit.jsonl"), current).unwrap();
        let found = moves(folder.path(), 1000.0).unwrap();
        let told: Vec<_> = found
            .iter()
            .map(|its| (its.t, its.job.as_str(), its.seconds, its.failed.as_deref()))
            .collect();
        assert_eq!(told, [(10.0, "a", 2.5, None), (14.0, "b", 6.0, Some("no report came"))]);
    }

    #[test]
    fn what_is_no_entry_is_named() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(moves(folder.path(), 0.0).unwrap(), []);
        fs::write(folder.path().join("audit.jsonl"), "{}\n").unwrap();
        let error = moves(folder.path(), 0.0).unwrap_err().to_string();
        assert!(error.ends_with("audit.jsonl:1: not an entry"), "{error}");
    }
}
