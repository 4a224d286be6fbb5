//! Lines of statsd's form in datagrams: the least a job can do, without a library and without
//! waiting: `loss:0.31|g`, `val_loss:0.4|g`, `batch_seconds:42|ms`, `step:120|g`, `epoch:1|g`.
//!
//! A datagram's lines are one report. Tags (`|#rank:1`) and sampling rates (`|@0.1`) are allowed;
//! of the tags, `rank` is read. A prefix up to the last dot is ignored, so `train.loss` is a loss.

use crate::names::{self, Meaning};
use crate::number::whole;
use crate::observation::{Loss, Observation, Phase, Span};

/// What a datagram says, and how many of its lines could not be read.
pub fn parse(datagram: &[u8]) -> (Observation, u64) {
    let text = String::from_utf8_lossy(datagram);
    let mut found = Observation::default();
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let bad = lines.filter(|line| take(&mut found, line.trim()).is_none()).count();
    (found, u64::try_from(bad).unwrap_or(u64::MAX))
}

/// Takes a line; `None` if it is no metric. One about something else is fine.
fn take(found: &mut Observation, line: &str) -> Option<()> {
    let (path, rest) = line.split_once(':')?;
    let mut fields = rest.split('|');
    let value: f64 = fields.next()?.parse().ok()?;
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
    match name {
        "batch_seconds" | "batch" | "step_seconds" => found.batch_seconds = Some(seconds),
        "step" => found.step = whole(value),
        "total_steps" => found.total_steps = whole(value),
        "expected_steps" => found.expected_steps = whole(value).filter(|steps| *steps > 0),
        "epoch" => found.epoch = Some(value),
        _ => {
            if let Some(Meaning::Loss { phase, span }) = names::meaning(name) {
                let phase = phase.unwrap_or(Phase::Train);
                let span = span.unwrap_or(Span::Step);
                found.losses.push(Loss { name: name.to_owned(), phase, span, value });
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_datagrams_lines_are_one_report() {
        let (found, bad) =
            parse(b"train.loss:0.31|g|#rank:2,host:a\nbatch_seconds:42|ms\nstep:120|g\nlr:1|g\n");
        assert_eq!((found.step, found.rank, bad), (Some(120), Some(2), 0));
        assert_eq!((found.batch_seconds, found.losses[0].value), (Some(0.042), 0.31));
        assert_eq!(found.losses.len(), 1);
    }

    #[test]
    fn totals_are_read_and_an_expectation_of_none_is_not() {
        let (found, bad) = parse(b"total_steps:900|g\nexpected_steps:300|g");
        assert_eq!((found.total_steps, found.expected_steps, bad), (Some(900), Some(300), 0));
        assert_eq!(parse(b"expected_steps:0|g").0.expected_steps, None);
    }

    #[test]
    fn what_is_no_metric_is_counted_and_the_rest_is_taken() {
        let (found, bad) = parse(b"loss\nloss:x|g\nloss:1\nloss:1|z\nval_loss:nan|g");
        assert_eq!((found.losses.len(), bad), (1, 4));
        assert!(found.losses[0].phase == Phase::Validation && found.losses[0].value.is_nan());
    }

    proptest! {
        #[test]
        fn no_datagram_is_too_strange(bytes in any::<Vec<u8>>(), text in r"[a-z.:|#0-9\n]*") {
            parse(&bytes);
            parse(text.as_bytes());
        }
    }
}
