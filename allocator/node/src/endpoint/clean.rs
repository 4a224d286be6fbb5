//! Cuts and escapes every text of a report. A job chooses these texts, and they reach logs, the audit
//! log, snapshots and terminals.

use paceline_api::plain::{message, name, path};
use paceline_wire::{Checkpoint, Eval, Kept, Progress};

/// The report with its texts cut and escaped, and without what the allocator does not use.
pub(super) fn cleaned(mut progress: Progress) -> Progress {
    // All fields are listed, so that a new text is not forgotten.
    let Progress {
        job,
        instance,
        source,
        dataset,
        eval,
        checkpoint,
        sidecar,
        tensorboard,
        schema: _,
        pid: _,
        state: _,
        started_at: _,
        now: _,
        step: _,
        epoch: _,
        total_steps: _,
        expected_steps: _,
        batch_latency: _,
        targets: _,
        reached: _,
        validation: _,
        signals: _,
        cpu: _,
        rank: _,
        dropped: _,
        rejected: _,
    } = &mut progress;
    let Eval { name: loss, .. } = eval;
    for text in [job, instance, source, loss].into_iter().chain(dataset) {
        *text = name(text);
    }
    let Checkpoint { path: saved, error, kept, .. } = checkpoint;
    for text in saved.iter_mut().chain(kept.iter_mut().map(|Kept { path, .. }| path)) {
        *text = path(text);
    }
    if let Some(text) = error {
        *text = message(text);
    }
    *sidecar = None;
    *tensorboard = None;
    progress
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::tests::progress;

    #[test]
    fn texts_of_a_report_are_cut_and_escaped() {
        let mut hostile: Progress = serde_json::from_str(&progress(1)).unwrap();
        let long = format!("a\n{}", "x".repeat(300_000));
        for text in [&mut hostile.job, &mut hostile.instance, &mut hostile.eval.name] {
            text.clone_from(&long);
        }
        hostile.dataset = Some(long.clone());
        hostile.checkpoint.error = Some(long.clone());
        hostile.checkpoint.path = Some(long);
        let clean = cleaned(hostile);
        for (text, most) in [
            (&clean.job, 64),
            (&clean.instance, 64),
            (&clean.eval.name, 64),
            (clean.dataset.as_ref().unwrap(), 64),
            (clean.checkpoint.error.as_ref().unwrap(), 200),
            (clean.checkpoint.path.as_ref().unwrap(), 1024),
        ] {
            assert!(text.starts_with("a\\u{a}xxx") && text.ends_with("x…"), "{text}");
            assert_eq!(text.chars().count(), most);
        }
    }

    #[test]
    fn texts_of_an_honest_report_are_unchanged() {
        let honest: Progress = serde_json::from_str(&progress(1)).unwrap();
        assert_eq!(cleaned(honest.clone()), honest);
    }
}
