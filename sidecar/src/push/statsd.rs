//! Lines in statsd format, sent as datagrams. A job needs no library and never waits:
//! `loss:0.31|g`, `val_loss:0.4|g`, `batch_seconds:42|ms`, `step:120|g`, `epoch:1|g`.
//!
//! A datagram's lines are one report. Tags (`|#rank:1`) and sampling rates (`|@0.1`) are allowed;
//! of the tags, `rank` is read. A prefix up to the last dot is ignored, so `train.loss` is a loss. Times
//! of batches are known by any of their names: `train.step_time:250|ms`, `trainer.step:250|ms`.
//!
//! Steps, epochs and their totals must be absolute. A counter (`step:1|c`) and a gauge with a sign
//! (`step:+1|g`) are changes of a value that only a server keeps, so they are ignored.

use paceline_lines::names::{self, Meaning};
use paceline_lines::number::whole;
use paceline_lines::observation::{Loss, Observation, Phase, Span};

/// The observation in a datagram, and the number of its invalid lines.
pub fn parse(datagram: &[u8]) -> (Observation, u64) {
    let text = String::from_utf8_lossy(datagram);
    let mut found = Observation::default();
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let bad = lines.filter(|line| take(&mut found, line.trim()).is_none()).count();
    (found, u64::try_from(bad).unwrap_or(u64::MAX))
}

/// Takes a line. `None` if it is not a metric; an unknown metric is ignored.
fn take(found: &mut Observation, line: &str) -> Option<()> {
    let (path, rest) = line.split_once(':')?;
    let mut fields = rest.split('|');
    let text = fields.next()?;
    let value: f64 = text.parse().ok()?;
    let kind = fields.next()?;
    if !["g", "c", "ms", "h", "d"].contains(&kind) {
        return None;
    }
    for tags in fields.filter_map(|field| field.strip_prefix('#')) {
        let rank = tags.split(',').find_map(|tag| tag.strip_prefix("rank:")?.parse().ok());
        found.rank = rank.or(found.rank);
    }
    let name = path.rsplit('.').next().unwrap_or(path);
    let seconds = if kind == "ms" { value / 1000.0 } else { value };
    let is_change = kind == "c" || (kind == "g" && text.starts_with(['+', '-']));
    match name {
        "batch_seconds" | "batch" | "step_seconds" => found.batch_seconds = Some(seconds),
        // A timing of steps does not count them.
        "step" | "iteration" | "iter" if kind == "ms" => found.batch_seconds = Some(seconds),
        "step" | "total_steps" | "expected_steps" | "epoch" if is_change => {}
        "step" => found.step = whole(value),
        "total_steps" => found.total_steps = whole(value),
        "expected_steps" => found.expected_steps = whole(value).filter(|steps| *steps > 0),
        "epoch" => found.epoch = Some(value),
        _ => other(found, name, (value, kind), is_change),
    }
    Some(())
}

/// Takes a metric by the meaning of its name.
fn other(found: &mut Observation, name: &str, (value, kind): (f64, &str), is_change: bool) {
    match names::meaning(name) {
        Some(Meaning::Loss { phase, span }) => {
            let phase = phase.unwrap_or(Phase::Train);
            let span = span.unwrap_or(Span::Step);
            found.losses.push(Loss { name: name.to_owned(), phase, span, value });
        }
        Some(Meaning::BatchTime { per_second }) => {
            let per_second = if kind == "ms" { 1e3 } else { per_second };
            found.batch_seconds = Some(value / per_second);
        }
        Some(Meaning::BatchRate) if value > 0.0 => found.batch_seconds = Some(1.0 / value),
        Some(Meaning::Step) if !is_change => found.step = whole(value),
        Some(
            Meaning::BatchRate
            | Meaning::Step
            | Meaning::Epoch
            | Meaning::Batch
            | Meaning::TotalSteps
            | Meaning::TotalEpochs
            | Meaning::WallTime
            | Meaning::Elapsed,
        )
        | None => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_of_a_datagram_are_one_report() {
        let (found, bad) =
            parse(b"train.loss:0.31|g|#rank:2,host:a\nbatch_seconds:42|ms\nstep:120|g\nlr:1|g\n");
        assert_eq!((found.step, found.rank, bad), (Some(120), Some(2), 0));
        assert_eq!((found.batch_seconds, found.losses[0].value), (Some(0.042), 0.31));
        assert_eq!(found.losses.len(), 1);
    }

    #[test]
    fn times_of_batches_are_known_by_their_suffix() {
        for (text, seconds) in [
            ("job7.train.step_time:250|ms", Some(0.25)),
            ("trainer.step:250|ms", Some(0.25)),
            ("train.iter_time_ms:250|g", Some(0.25)),
            ("train.batch_time:0.25|g", Some(0.25)),
            ("train.steps_per_sec:4|g", Some(0.25)),
            ("train.data_time:250|ms", None),
            ("train.eval_time:250|ms", None),
            ("request:250|ms", None),
        ] {
            assert_eq!(parse(text.as_bytes()).0.batch_seconds, seconds, "{text}");
        }
        assert_eq!(parse(b"train.global_step:7|g").0.step, Some(7));
    }

    #[test]
    fn totals_are_read_and_zero_expected_steps_are_ignored() {
        let (found, bad) = parse(b"total_steps:900|g\nexpected_steps:300|g");
        assert_eq!((found.total_steps, found.expected_steps, bad), (Some(900), Some(300), 0));
        assert_eq!(parse(b"expected_steps:0|g").0.expected_steps, None);
    }

    #[test]
    fn changes_of_a_step_or_a_total_are_ignored() {
        for change in ["1|c", "1|c|@0.1", "+1|g", "-1|g"] {
            for name in ["train.step", "global_step", "total_steps", "expected_steps", "epoch"] {
                let text = format!("loss:-0.5|g\n{name}:{change}");
                let (found, bad) = parse(text.as_bytes());
                assert_eq!((found.losses[0].value, bad), (-0.5, 0), "{text}");
                assert_eq!(Observation { losses: Vec::new(), ..found }, Observation::default());
            }
        }
        assert_eq!(parse(b"train.step:7|h\nepoch:2|g").0.step, Some(7));
    }

    #[test]
    fn invalid_lines_are_counted_and_the_rest_is_read() {
        let (found, bad) = parse(b"loss\nloss:x|g\nloss:1\nloss:1|z\nval_loss:nan|g");
        assert_eq!((found.losses.len(), bad), (1, 4));
        assert!(found.losses[0].phase == Phase::Validation && found.losses[0].value.is_nan());
    }

    proptest! {
        #[test]
        fn any_datagram_is_parsed_without_panic(bytes in any::<Vec<u8>>(), text in r"[a-z.:|#0-9\n]*") {
            parse(&bytes);
            parse(text.as_bytes());
        }
    }
}
