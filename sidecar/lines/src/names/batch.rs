//! Names of the time of a batch, and of batches per second.

use super::Meaning;
use super::words::{Kinds, Word, kinds, same};

pub(super) fn batch(name: &str, words: &[Word<'_>]) -> Option<Meaning> {
    // Short names of seconds per batch, mostly beside that of the data.
    const SECONDS: [&str; 5] = ["batch t", "s b", "updt s", "update s", "batch latency"];
    if SECONDS.iter().any(|name| same(words, name)) {
        return Some(Meaning::BatchTime { per_second: 1.0 });
    }
    if is_per_step(name, words) {
        return Some(Meaning::BatchTime { per_second: 1.0 });
    }
    // Short names of milliseconds per batch.
    if ["bch ms", "btime ms"].iter().any(|name| same(words, name)) {
        return Some(Meaning::BatchTime { per_second: 1e3 });
    }
    let all = kinds(words);
    if !all.any(Kinds::TIME | Kinds::SECOND | Kinds::MILLI | Kinds::COST) {
        // fairseq's name for updates per second.
        return same(words, "ups").then_some(Meaning::BatchRate);
    }
    // torchtitan's name for the time of a whole step.
    if same(words, "time metrics end to end s") {
        return Some(Meaning::BatchTime { per_second: 1.0 });
    }
    if is_elapsed(words) {
        return Some(Meaning::Elapsed);
    }
    // The first is a counter; the others are the Hugging Face trainer's means of the whole run.
    let others = ["time step", "train steps per second", "train train steps per second"];
    if others.iter().any(|name| same(words, name)) {
        return None;
    }
    let ratio = ratio(name, words);
    let rate = matches!(ratio, Some(Ratio::Rate))
        || [Kinds::MANY_STEPS, Kinds::PER, Kinds::SECOND].iter().all(|kind| all.any(*kind));
    let time = Kinds::TIME | Kinds::SECOND | Kinds::MILLI | Kinds::MICRO | Kinds::COST;
    let mut known = time | Kinds::TRAIN | Kinds::STEP | Kinds::MANY_STEPS | Kinds::PER;
    known = known | Kinds::BESIDE;
    if rate {
        known = known | Kinds::EPOCH;
    }
    if !words.iter().all(|word| word.kinds.any(known)) {
        return None;
    }
    if rate {
        return Some(Meaning::BatchRate);
    }
    let per_second = if all.any(Kinds::MILLI) {
        1e3
    } else if all.any(Kinds::MICRO) {
        1e6
    } else {
        1.0
    };
    let timed = all.any(Kinds::STEP) && all.any(Kinds::TIME | Kinds::COST);
    (timed || ratio.is_some()).then_some(Meaning::BatchTime { per_second })
}

/// Whether a name is that of the time of a step: `time/step`, `time per step`, `time_each_step`. Without a mark the
/// words name a counter.
fn is_per_step(name: &str, words: &[Word<'_>]) -> bool {
    match words {
        [time, step] => {
            (time.is("time") || time.is("t")) && step.kinds.any(Kinds::STEP) && name.contains('/')
        }
        [time, per, step] => {
            let is_per = per.kinds.any(Kinds::PER) || per.is("each");
            time.is("time") && is_per && step.kinds.any(Kinds::STEP)
        }
        _ => false,
    }
}

/// Whether a name is that of the time since the start: `elapsed_time`.
fn is_elapsed(words: &[Word<'_>]) -> bool {
    let is = |word: &Word<'_>, names: &[&str]| names.iter().any(|name| word.is(name));
    let plain = ["time", "total", "epoch", "since", "start", "s", "sec", "seconds"];
    words.iter().any(|word| is(word, &["elapsed", "elap"]))
        && words.iter().all(|word| is(word, &["elapsed", "elap"]) || is(word, &plain))
}

/// A time and a step, one of them per the other.
enum Ratio {
    /// Steps per second.
    Rate,
    /// Seconds per step.
    Time,
}

/// `iter/s`, `steps per second`, `sec/batch`.
fn ratio(name: &str, words: &[Word<'_>]) -> Option<Ratio> {
    let step = Kinds::STEP | Kinds::MANY_STEPS;
    let time = Kinds::SECOND | Kinds::MILLI | Kinds::MICRO;
    let mut rest = name;
    let mut before: Option<Word<'_>> = None;
    let mut per = false;
    for word in words {
        let (gap, after) = rest.split_at_checked(rest.find(word.text)?)?;
        rest = after.get(word.text.len()..)?;
        if word.kinds.any(Kinds::PER) {
            per = true;
            continue;
        }
        if let Some(before) = before.filter(|_| per || gap.trim() == "/") {
            if before.kinds.any(step) && word.kinds.any(Kinds::SECOND) {
                return Some(Ratio::Rate);
            }
            if before.kinds.any(time) && word.kinds.any(step) {
                return Some(Ratio::Time);
            }
        }
        (before, per) = (Some(*word), false);
    }
    None
}
