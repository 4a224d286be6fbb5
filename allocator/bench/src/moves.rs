//! The jobs' moves between nodes, read from the allocator's audit log.

use std::path::Path;

use anyhow::Context;
use paceline_api::audit::{Entry, Record, read};

use super::record::Move;

/// The moves in the audit log of the run in `folder`. `began` is the run's beginning in Unix seconds.
pub(crate) fn moves(folder: &Path, began: f64) -> anyhow::Result<Vec<Move>> {
    let records = read::last(folder, usize::MAX)
        .with_context(|| format!("cannot read the audit log in {}", folder.display()))?;
    let mut moves: Vec<Move> =
        records.into_iter().filter_map(|record| its_move(record, began)).collect();
    moves.sort_by(|a, b| a.t.total_cmp(&b.t));
    Ok(moves)
}

/// The move that a record describes, if one was started. A record is written when its move is over.
fn its_move(record: Record, began: f64) -> Option<Move> {
    let (job, from, to, seconds, failed) =
        if let Entry::Moved { job, from, to, seconds, .. } = record.entry {
            (job, from, to, seconds, None)
        } else if let Entry::Stayed { container: Some(_), job, from, to, why, seconds, .. } =
            record.entry
        {
            (job, from, to, seconds, Some(why))
        } else {
            return None;
        };
    let seconds = seconds.unwrap_or(0.0);
    Some(Move { t: record.at - began - seconds, job, from, to, seconds, failed })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn started_moves_are_found_whether_they_succeeded_or_not() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(moves(folder.path(), 0.0).unwrap(), []);
        let line = |seq: u64, at: f64, rest: &str| {
            let link = "0".repeat(64);
            format!("{{\"seq\":{seq},\"at\":{at},\"prev\":{link:?},{rest},\"hash\":{link:?}}}\n")
        };
        let moved = r#""what":"moved","job":"a","container":"c","successor":"d","from":"n","to":"m","reason":"converged","saving":0.2,"seconds":2.5"#;
        let stayed = |container: &str, why: &str| {
            format!(
                r#""what":"stayed","job":"b","container":{container},"from":"m","to":"n","reason":"rebalance","why":{why:?},"seconds":6.0"#
            )
        };
        let older = line(1, 1012.5, moved);
        let current = [
            line(2, 1001.0, r#""what":"gone","job":"a","container":"c""#),
            line(3, 1020.0, &stayed("\"e\"", "no report came")),
            line(4, 1021.0, &stayed("null", "it keeps no checkpoints")),
        ];
        fs::write(folder.path().join("audit-00000000000000000001.jsonl"), older).unwrap();
        fs::write(folder.path().join("audit.jsonl"), current.concat()).unwrap();
        let found = moves(folder.path(), 1000.0).unwrap();
        let moved: Vec<_> = found
            .iter()
            .map(|its| (its.t, its.job.as_str(), its.seconds, its.failed.as_deref()))
            .collect();
        assert_eq!(moved, [(10.0, "a", 2.5, None), (14.0, "b", 6.0, Some("no report came"))]);
    }
}
